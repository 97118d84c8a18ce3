"""Go: the compiler, sources of modules, and why a build failed."""
