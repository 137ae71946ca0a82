"""Programs as people have them, each with what pathmix makes of it: docs/programs.md."""
