"""A file in every language, with a cursor, and what stands around that cursor.

SAMPLES: language -> text with a mark, kind of completion, enclosing scopes, siblings (nearest first), imports.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Sample:
    text: str
    kind: str
    scopes: list[str]
    siblings: list[str]
    imports: list[str]


GO = """\
package main

import (
	"fmt"
	x "os"
)

type A struct {
	a int
}

func (r *A) M(b string) error {
	│
}

func f(a int) int {
	g := func(a int) {}
	return a
}
"""
RUST = """\
use std::io;
use a::{b, c};

struct S<T> {
    a: T,
}

impl<T> S<T> {
    const X: i32 = 1;

    pub async fn m(&self) -> i32 {
        │
    }

    fn n(&self) {}
}
"""
C = """\
#include <stdio.h>
#include "a.h"

struct S { int a; };

int g(void);

static int f(int a, char *b)
{
    │
}
"""
CPP = """\
#include <vector>
using namespace std;

namespace n {
class A : public B {
public:
    A(int x) : a(x) {}
    virtual int m(int x) const override {
        │
    }
    int a;
};
}
"""
JAVA = """\
package a.b;
import java.util.List;

public class A<T> extends B {
    private int a = 1;

    public A(int x) { this.a = x; }

    int m(int x) throws E {
        │
    }

    abstract void n();
}
"""
CSHARP = """\
using System;

namespace N
{
    public class A : B
    {
        public int P { get; set; }

        public A(int x) { }

        public int M(int x)
        {
            │
        }
    }
}
"""
RUBY = """\
require "set"
require_relative "x"

module M
  class A < B
    attr_reader :a

    def f(a, b = 1)
      │
    end

    def self.g
      1
    end

    def h
    end
  end
end
"""
PHP = """\
<?php
use C\\D;
require_once 'x.php';

abstract class A extends B
{
    private int $a = 1;

    public static function m(int $x): ?int {
        │
    }

    abstract function n();
}
"""
BASH = """\
source x.sh
. y.sh

f() {
  echo 1
}

function g {
  │
}
"""
LUA = """\
local x = require("a.b")

local M = {}

function M.f(a, b)
  │
end

local function g(x)
end

M.q = function() return 1 end
"""
KOTLIN = """\
import c.d

class A(val x: Int) : B() {
    val a = 1

    override fun m(x: Int): Int {
        │
    }

    fun one() = 1
}
"""
SWIFT = """\
import Foundation

class A: B {
    let a = 1

    init(x: Int) { }

    func m(_ x: Int) -> Int {
        │
    }
}
"""
HTML = """\
<html>
  <body class="a">
    <p>text</p>
    <div>
      │
    </div>
  </body>
</html>
"""
CSS = """\
@import "a.css";

.a:hover { color: red; }

@media (max-width: 10px) {
  .b { color: blue; }

  .c {
    │
  }
}
"""
JSON = """\
{
  "a": [1, 2],
  "b": {
    "c": "d",
    │
    "e": 1
  }
}
"""
YAML = """\
a: 1
b:
  c: 2
  d:
    e: x
    │
"""
TOML = """\
title = "x"

[a]
b = 1
│

[[c.d]]
e = 2
"""
SQL = """\
CREATE TABLE t (
  a INT,
  b TEXT DEFAULT 'x',
  │
  c INT
);
"""
MARKDOWN = """\
# Title

## One

text
│

## Two
"""

SAMPLES: dict[str, Sample] = {
    "go": Sample(
        text=GO,
        kind="block",
        scopes=["func (r *A) M(b string) error {"],
        siblings=["func f(a int) int {", "type A struct {"],
        imports=['import (\n\t"fmt"\n\tx "os"\n)'],
    ),
    "rust": Sample(
        text=RUST,
        kind="block",
        scopes=["impl<T> S<T> {", "pub async fn m(&self) -> i32 {"],
        siblings=["fn n(&self) {", "const X: i32 = 1;"],
        imports=["use std::io;", "use a::{b, c};"],
    ),
    "c": Sample(
        text=C,
        kind="block",
        scopes=["static int f(int a, char *b)\n{"],
        siblings=["int g(void);", "struct S {"],
        imports=["#include <stdio.h>", '#include "a.h"'],
    ),
    "cpp": Sample(
        text=CPP,
        kind="block",
        scopes=["namespace n {", "class A : public B {", "virtual int m(int x) const override {"],
        siblings=["int a;", "A(int x) : a(x) {"],
        imports=["#include <vector>", "using namespace std;"],
    ),
    "java": Sample(
        text=JAVA,
        kind="block",
        scopes=["public class A<T> extends B {", "int m(int x) throws E {"],
        siblings=["abstract void n();", "public A(int x) {", "private int a = 1;"],
        imports=["import java.util.List;"],
    ),
    "csharp": Sample(
        text=CSHARP,
        kind="block",
        scopes=["namespace N\n{", "public class A : B\n    {", "public int M(int x)\n        {"],
        siblings=["public A(int x) {", "public int P { get; set; }"],
        imports=["using System;"],
    ),
    "ruby": Sample(
        text=RUBY,
        kind="block",
        scopes=["module M", "class A < B", "def f(a, b = 1)"],
        siblings=["def self.g", "attr_reader :a", "def h"],
        imports=['require "set"', 'require_relative "x"'],
    ),
    "php": Sample(
        text=PHP,
        kind="block",
        scopes=["abstract class A extends B\n{", "public static function m(int $x): ?int {"],
        siblings=["abstract function n();", "private int $a = 1;"],
        imports=["use C\\D;", "require_once 'x.php';"],
    ),
    "shellscript": Sample(
        text=BASH, kind="block", scopes=["function g {"], siblings=["f() {"], imports=["source x.sh", ". y.sh"]
    ),
    "lua": Sample(
        text=LUA,
        kind="block",
        scopes=["function M.f(a, b)"],
        siblings=["local function g(x)", "M.q = function()"],
        imports=['local x = require("a.b")'],
    ),
    "kotlin": Sample(
        text=KOTLIN,
        kind="block",
        scopes=["class A(val x: Int) : B() {", "override fun m(x: Int): Int {"],
        siblings=["fun one() = 1", "val a = 1"],
        imports=["import c.d"],
    ),
    "swift": Sample(
        text=SWIFT,
        kind="block",
        scopes=["class A: B {", "func m(_ x: Int) -> Int {"],
        siblings=["init(x: Int) {", "let a = 1"],
        imports=["import Foundation"],
    ),
    "html": Sample(text=HTML, kind="block", scopes=["<html>", '<body class="a">', "<div>"], siblings=[], imports=[]),
    "css": Sample(
        text=CSS,
        kind="block",
        scopes=["@media (max-width: 10px) {", ".c {"],
        siblings=[".b {"],
        imports=['@import "a.css";'],
    ),
    "json": Sample(text=JSON, kind="line", scopes=['"b": {'], siblings=['"e": 1', '"c": "d"'], imports=[]),
    "yaml": Sample(text=YAML, kind="line", scopes=["b:", "d:"], siblings=["e: x"], imports=[]),
    "toml": Sample(text=TOML, kind="line", scopes=["[a]"], siblings=["b = 1"], imports=[]),
    "sql": Sample(
        text=SQL,
        kind="line",
        scopes=["CREATE TABLE t ("],
        siblings=["c INT", "b TEXT DEFAULT 'x'", "a INT"],
        imports=[],
    ),
    "markdown": Sample(text=MARKDOWN, kind="line", scopes=["# Title", "## One"], siblings=["## Two"], imports=[]),
}
