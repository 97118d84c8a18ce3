"""An upgrade on a throwaway copy of the core cluster, before it is done on the real one."""
