"""The import-cycle check: modules of Rust crates, Python packages and TypeScript folders."""
