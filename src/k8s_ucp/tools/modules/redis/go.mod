module k8s-ucp.io/tools/redis

go 1.25.0

require github.com/alicebob/miniredis/v2 v2.38.0

require github.com/yuin/gopher-lua v1.1.1 // indirect
