// Command ingress stands in for an ingress controller where no chart can be fetched: it serves the
// Ingresses of its cluster on $PORT, by host and path, and writes $ADDRESS into their status. The
// API server is asked at each request; nothing is kept.
package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"time"
)

const (
	account   = "/var/run/secrets/kubernetes.io/serviceaccount/"
	ingresses = "/apis/networking.k8s.io/v1/ingresses"
)

type ingress struct {
	Metadata struct{ Name, Namespace string }
	Spec     struct{ Rules []rule }
	Status   struct {
		LoadBalancer struct{ Ingress []json.RawMessage }
	}
}

type rule struct {
	Host string
	HTTP struct{ Paths []path }
}

type path struct {
	Path    string
	Backend struct {
		Service struct {
			Name string
			Port port
		}
	}
}

type port struct {
	Name   string
	Number int
}

type service struct {
	Spec struct {
		ClusterIP string
		Ports     []struct {
			Name string
			Port int
		}
	}
}

// A connection that is kept would lead to its pod, whose address no longer responds once it is replaced.
var backends = &http.Transport{DisableKeepAlives: true}

type server struct {
	client *http.Client
	base   string
}

func main() {
	authority, err := os.ReadFile(account + "ca.crt")
	if err != nil {
		log.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority)
	api := server{
		client: &http.Client{
			Timeout:   10 * time.Second,
			Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}},
		},
		base: "https://" + net.JoinHostPort(
			os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")),
	}
	go func() {
		for ; ; time.Sleep(time.Second) {
			if err := api.writeAddresses(os.Getenv("ADDRESS")); err != nil {
				log.Print(err)
			}
		}
	}()
	log.Fatal(http.ListenAndServe(":"+os.Getenv("PORT"), api))
}

// ServeHTTP leads to the Service that the host and the path belong to.
func (api server) ServeHTTP(answer http.ResponseWriter, request *http.Request) {
	backend, err := api.find(request)
	if err != nil {
		http.Error(answer, err.Error(), http.StatusBadGateway)
		return
	}
	if backend == nil {
		http.NotFound(answer, request)
		return
	}
	proxy := httputil.NewSingleHostReverseProxy(backend)
	proxy.Transport = backends
	proxy.ServeHTTP(answer, request)
}

// find is the address of the backend; nil: no Ingress wants the request. Rules that name the host
// count more than those for every host, and longer paths more than shorter ones.
func (api server) find(request *http.Request) (*url.URL, error) {
	host, _, err := net.SplitHostPort(request.Host)
	if err != nil {
		host = request.Host
	}
	items, err := api.list()
	if err != nil {
		return nil, err
	}
	best, weight := (*path)(nil), -1
	namespace := ""
	for _, item := range items {
		for _, rule := range item.Spec.Rules {
			if rule.Host != "" && rule.Host != host {
				continue
			}
			for _, each := range rule.HTTP.Paths {
				found := len(each.Path) + 1000*len(rule.Host)
				if strings.HasPrefix(request.URL.Path, each.Path) && found > weight {
					best, weight, namespace = &each, found, item.Metadata.Namespace
				}
			}
		}
	}
	if best == nil {
		return nil, nil
	}
	name, wanted := best.Backend.Service.Name, best.Backend.Service.Port
	var target service
	if err := api.ask("GET", "/api/v1/namespaces/"+namespace+"/services/"+name, nil, &target); err != nil {
		return nil, err
	}
	for _, each := range target.Spec.Ports {
		if each.Port == wanted.Number || wanted.Name != "" && each.Name == wanted.Name {
			return &url.URL{Scheme: "http", Host: fmt.Sprintf("%s:%d", target.Spec.ClusterIP, each.Port)}, nil
		}
	}
	return nil, fmt.Errorf("service %s/%s has no port %v", namespace, name, wanted)
}

// writeAddresses tells where each Ingress is served, as controllers do.
func (api server) writeAddresses(address string) error {
	items, err := api.list()
	if err != nil {
		return err
	}
	body := fmt.Sprintf(`{"status":{"loadBalancer":{"ingress":[{"ip":%q}]}}}`, address)
	for _, item := range items {
		if len(item.Status.LoadBalancer.Ingress) > 0 {
			continue
		}
		place := "/apis/networking.k8s.io/v1/namespaces/" + item.Metadata.Namespace + "/ingresses/" +
			item.Metadata.Name + "/status"
		if err := api.ask("PATCH", place, []byte(body), &struct{}{}); err != nil {
			return err
		}
	}
	return nil
}

func (api server) list() ([]ingress, error) {
	var found struct{ Items []ingress }
	err := api.ask("GET", ingresses, nil, &found)
	return found.Items, err
}

func (api server) ask(method, place string, body []byte, into any) error {
	token, err := os.ReadFile(account + "token")
	if err != nil {
		return err
	}
	request, err := http.NewRequest(method, api.base+place, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+string(token))
	request.Header.Set("Content-Type", "application/merge-patch+json")
	answer, err := api.client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(io.LimitReader(answer.Body, 300))
		return fmt.Errorf("%s %s: %s %s", method, place, answer.Status, said)
	}
	return json.NewDecoder(answer.Body).Decode(into)
}
