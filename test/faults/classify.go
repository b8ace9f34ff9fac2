package faults

import (
	"net/http"
	"strings"
)

// requestKind is the kind of a request that faults depend on.
type requestKind int

const (
	read requestKind = iota
	create
	write
	watch
)

// request is what is known of a request.
type request struct {
	kind requestKind
	// class names requests that are alike: verb, resource and subresource, without the object.
	class string
}

// of returns the rates of a kind of request.
func (r Rates) of(kind requestKind) []Rate {
	switch kind {
	case create:
		return r.Create
	case write:
		return r.Write
	case watch:
		return r.Watch
	}
	return r.Read
}

func classify(r *http.Request) request {
	verb := r.Method
	kind := write
	switch {
	case r.Method == http.MethodGet && r.URL.Query().Get("watch") != "" && r.URL.Query().Get("watch") != "false":
		verb, kind = "WATCH", watch
	case r.Method == http.MethodGet, r.Method == http.MethodHead:
		kind = read
	case r.Method == http.MethodPost:
		kind = create
	}
	return request{kind: kind, class: verb + " " + resource(r.URL.Path)}
}

// resource removes namespace and name from a path: /apis/GROUP/VERSION/namespaces/NAMESPACE/RESOURCE/NAME/SUBRESOURCE.
func resource(path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	begin := 3
	switch parts[0] {
	case "api":
		begin = 2
	case "apis":
	default:
		return path
	}
	if len(parts) > begin+2 && parts[begin] == "namespaces" {
		begin += 2
	}
	if len(parts) <= begin {
		return path
	}
	name := parts[begin]
	if len(parts) > begin+2 {
		name += "/" + parts[begin+2]
	}
	return name
}
