package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// fields are the content of an object as it is in a request or an answer.
type fields = map[string]any

// call is a request of the core about one kind.
type call struct {
	method, group, version, namespace, plural, name, subresource string
}

// breaker is how a core breaks one rule: the proxy changes what it reads, and what it writes.
type breaker struct {
	// see changes an object that the core reads; false hides it. On a watch, event is the type of the event.
	see func(p *proxy, c call, event string, object fields) bool
	// write changes what the core writes before the API server has it; without content for deletions.
	write func(p *proxy, c call, content fields)
}

// proxy stands between a core and the API server.
type proxy struct {
	breaker
	server     *httptest.Server
	kubeconfig []byte
	admin      client.Client
	// react is for how long the suite waits for the core.
	react time.Duration
	mu    sync.Mutex
	done  map[string]bool
}

// once reports whether something is done for the first time.
func (p *proxy) once(key string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	first := !p.done[key]
	p.done[key] = true
	return first
}

// did reports whether something was done.
func (p *proxy) did(key string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.done[key]
}

// undo resets that something was done, and reports whether it was.
func (p *proxy) undo(key string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	done := p.done[key]
	delete(p.done, key)
	return done
}

func startProxy(t *testing.T, how breaker, react time.Duration) *proxy {
	t.Helper()
	target, err := url.Parse(env.Config.Host)
	if err != nil {
		t.Fatal(err)
	}
	config := rest.CopyConfig(env.Config)
	config.UserAgent = "broken-core"
	config.QPS = -1
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{breaker: how, react: react, done: map[string]bool{}}
	if p.admin, err = client.New(config, client.Options{Scheme: runtime.NewScheme()}); err != nil {
		t.Fatal(err)
	}
	reverse := &httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1, ModifyResponse: p.answer,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Header.Del("Accept-Encoding")
			r.Out.Header.Set("Accept", onlyJSON(r.In.Header.Get("Accept")))
			p.request(r.Out)
		},
		// The core has cancelled the request.
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	p.server = httptest.NewServer(reverse)
	t.Cleanup(func() { p.server.CloseClientConnections(); p.server.Close() })
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters["proxy"] = &clientcmdapi.Cluster{Server: p.server.URL}
	kubeconfig.AuthInfos["core"] = &clientcmdapi.AuthInfo{}
	kubeconfig.Contexts["proxy"] = &clientcmdapi.Context{Cluster: "proxy", AuthInfo: "core"}
	kubeconfig.CurrentContext = "proxy"
	if p.kubeconfig, err = clientcmd.Write(*kubeconfig); err != nil {
		t.Fatal(err)
	}
	return p
}

// onlyJSON leaves those of the accepted formats that the proxy can read.
func onlyJSON(accept string) string {
	formats := slices.DeleteFunc(strings.Split(accept, ","), func(f string) bool { return !strings.Contains(f, "json") })
	if len(formats) == 0 {
		return "application/json"
	}
	return strings.Join(formats, ",")
}

// callOf reads the path of a request; false for those that are about no kind.
func callOf(r *http.Request) (c call, found bool) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		c.version, parts = parts[1], parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		c.group, c.version, parts = parts[1], parts[2], parts[3:]
	default:
		return c, false
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		c.namespace, parts = parts[1], parts[2:]
	}
	parts = append(parts, "", "")
	c.method, c.plural, c.name, c.subresource = r.Method, parts[0], parts[1], parts[2]
	return c, true
}

func (p *proxy) request(r *http.Request) {
	c, found := callOf(r)
	if !found || p.write == nil || r.Method == http.MethodGet || r.Body == nil {
		return
	}
	body, err := io.ReadAll(r.Body)
	_ = r.Body.Close()
	content := fields{}
	if r.Method != http.MethodDelete && err == nil && read(r, body, &content) {
		p.write(p, c, content)
		body, _ = json.Marshal(content)
	} else if r.Method == http.MethodDelete {
		p.write(p, c, nil)
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	r.Header.Set("Content-Length", strconv.Itoa(len(body)))
}

// read decodes the body of a request, and sets its content type to JSON.
func read(r *http.Request, body []byte, content *fields) bool {
	if strings.Contains(r.Header.Get("Content-Type"), "protobuf") {
		object, _, err := clientgoscheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
		if err != nil {
			return false
		}
		if *content, err = runtime.DefaultUnstructuredConverter.ToUnstructured(object); err != nil {
			return false
		}
		r.Header.Set("Content-Type", "application/json")
		return true
	}
	return json.Unmarshal(body, content) == nil
}

func (p *proxy) answer(r *http.Response) error {
	c, found := callOf(r.Request)
	if !found || p.see == nil || r.StatusCode >= http.StatusMultipleChoices || r.Request.Method == http.MethodDelete {
		return nil
	}
	if r.Request.URL.Query().Get("watch") != "" {
		r.Body = p.events(c, r.Body)
		return nil
	}
	body, err := io.ReadAll(r.Body)
	_ = r.Body.Close()
	if err != nil {
		return err
	}
	content := fields{}
	if json.Unmarshal(body, &content) == nil {
		if items, is := content["items"].([]any); is {
			content["items"] = slices.DeleteFunc(items, func(item any) bool {
				object, is := item.(fields)
				return is && !p.sees(c, "", object)
			})
		} else {
			p.sees(c, "", content)
		}
		if body, err = json.Marshal(content); err != nil {
			return err
		}
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	r.Header.Set("Content-Length", strconv.Itoa(len(body)))
	return nil
}

// sees has the breaker change an object, whose namespace a request for those of all namespaces does not name.
func (p *proxy) sees(c call, event string, o fields) bool {
	if namespace := text(o, "metadata", "namespace"); namespace != "" {
		c.namespace = namespace
	}
	return p.see(p, c, event, o)
}

// events changes the events of a watch one by one.
func (p *proxy) events(c call, from io.ReadCloser) io.ReadCloser {
	reader, writer := io.Pipe()
	go func() {
		defer func() { _ = from.Close() }()
		decoder, encoder := json.NewDecoder(from), json.NewEncoder(writer)
		for {
			event := fields{}
			if err := decoder.Decode(&event); err != nil {
				_ = writer.CloseWithError(io.EOF)
				return
			}
			kind, _ := event["type"].(string)
			if object, is := event["object"].(fields); is && kind != "BOOKMARK" && kind != "ERROR" && !p.sees(c, kind, object) {
				continue
			}
			if err := encoder.Encode(event); err != nil {
				return
			}
		}
	}()
	return reader
}

// patch has the core write what it should not, in addition.
func (p *proxy) patch(object client.Object, content string, status bool) {
	patch := client.RawPatch(types.MergePatchType, []byte(content))
	if status {
		_ = p.admin.Status().Patch(context.Background(), object, patch)
		return
	}
	_ = p.admin.Patch(context.Background(), object, patch)
}
