module k8s-ucp.io/tests/echo

go 1.26.0
