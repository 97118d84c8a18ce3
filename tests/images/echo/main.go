// Command echo stands in for the echo app where no image can be pulled: it answers every request
// with the tag of its image, on $PORT.
package main

import (
	"fmt"
	"net/http"
	"os"
)

func main() {
	http.HandleFunc("/", func(answer http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(answer, os.Getenv("TAG"))
	})
	if err := http.ListenAndServe(":"+os.Getenv("PORT"), nil); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
