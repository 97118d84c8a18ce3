// Command redis-server answers Redis clients from memory, with miniredis, the server that Argo CD's
// own headless mode runs on. It stands in where no wheel with the real redis-server exists.
//
// It reads bind, port, unixsocket and requirepass as redis-server does: from a redis.conf, from stdin
// ("-") or from --name value arguments. Other directives are ignored: it keeps nothing on disk. With
// port 0 it listens on any free port, since miniredis can't do without one.
package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// settings of redis.conf that matter for a server that keeps nothing.
type settings map[string]string

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "redis-server:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) == 1 && (arguments[0] == "--version" || arguments[0] == "-v") {
		fmt.Println("redis-server: miniredis")
		return nil
	}
	wanted, err := read(arguments)
	if err != nil {
		return err
	}
	server := miniredis.NewMiniRedis()
	if password := wanted["requirepass"]; password != "" {
		server.RequireAuth(password)
	}
	address := net.JoinHostPort(wanted["bind"], wanted["port"])
	if err := server.StartAddr(address); err != nil {
		return fmt.Errorf("can't listen on %s: %w", address, err)
	}
	defer server.Close()
	if path := wanted["unixsocket"]; path != "" {
		listener, err := listen(path)
		if err != nil {
			return err
		}
		defer listener.Close()
		go serve(server, listener)
	}
	fmt.Println("Ready to accept connections on", server.Addr())

	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGINT, syscall.SIGTERM)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	last := time.Now()
	for {
		select {
		case <-stop:
			return nil
		case now := <-tick.C:
			// miniredis's clock stands still unless it is moved; keys expire by it.
			server.FastForward(now.Sub(last))
			last = now
		}
	}
}

// listen replaces a socket that an earlier server left.
func listen(path string) (net.Listener, error) {
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	return net.Listen("unix", path)
}

func serve(server *miniredis.Miniredis, listener net.Listener) {
	for {
		connection, err := listener.Accept()
		if err != nil {
			return
		}
		server.Server().ServeConn(connection)
	}
}

// read collects directives from redis.conf and from --name value pairs; later ones win.
func read(arguments []string) (settings, error) {
	wanted := settings{"bind": "127.0.0.1", "port": "6379"}
	if len(arguments) > 0 && !strings.HasPrefix(arguments[0], "--") {
		source := io.Reader(os.Stdin)
		if arguments[0] != "-" {
			file, err := os.Open(arguments[0])
			if err != nil {
				return nil, err
			}
			defer file.Close()
			source = file
		}
		if err := wanted.lines(source); err != nil {
			return nil, err
		}
		arguments = arguments[1:]
	}
	for index := 0; index+1 < len(arguments); index++ {
		if name, ok := strings.CutPrefix(arguments[index], "--"); ok {
			wanted.set(name, arguments[index+1:])
		}
	}
	return wanted, nil
}

func (wanted settings) lines(source io.Reader) error {
	scanner := bufio.NewScanner(source)
	for scanner.Scan() {
		words := strings.Fields(scanner.Text())
		if len(words) > 1 && !strings.HasPrefix(words[0], "#") {
			wanted.set(words[0], words[1:])
		}
	}
	return scanner.Err()
}

// set takes the first value only: a second bind address has no place here.
func (wanted settings) set(name string, values []string) {
	wanted[strings.ToLower(name)] = strings.Trim(values[0], `"'`)
}
