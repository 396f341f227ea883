"""The subcommands of `midfill` that people type. Each module has a `main(argv) -> exit code`."""
