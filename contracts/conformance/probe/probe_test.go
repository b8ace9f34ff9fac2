package probe

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
)

type fixed struct {
	machines []Machine
	err      error
}

func (f fixed) Machines(context.Context) ([]Machine, error) { return f.machines, f.err }

func TestHTTPCarriesMachines(t *testing.T) {
	for name, want := range map[string][]Machine{
		"none": {},
		"two":  {{ID: "i-1", ProviderID: "x:///1", Running: true, FailureDomain: "a", Marks: []string{"name"}}, {ID: "i-2"}},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(Handler(fixed{machines: want}))
			defer server.Close()
			got, err := HTTP(server.URL).Machines(t.Context())
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("got %v, %v; want %v", got, err, want)
			}
		})
	}
}

// What cannot be read must not pass for an infrastructure without machines.
func TestHTTPRefusesOtherAnswers(t *testing.T) {
	answers := map[string]http.Handler{
		"an error":          Handler(fixed{err: errors.New("no rights")}),
		"no list":           http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{}`)) }),
		"no JSON":           http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`<html>`)) }),
		"nothing under it":  http.NotFoundHandler(),
		"a list of strings": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"machines":["a"]}`)) }),
	}
	for name, handler := range answers {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(handler)
			defer server.Close()
			if got, err := HTTP(server.URL).Machines(t.Context()); err == nil {
				t.Errorf("got %v and no error", got)
			}
		})
	}
}

// The errors of a probe come to reports, which are published.
func TestErrorsHaveNoPassword(t *testing.T) {
	for name, handler := range map[string]http.Handler{
		"no rights": http.NotFoundHandler(), "no JSON": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`<html>`)) }),
		"no list": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{}`)) }),
	} {
		server := httptest.NewServer(handler)
		_, err := HTTP(strings.Replace(server.URL, "http://", "http://user:pass-word@", 1)).Machines(t.Context())
		server.Close()
		_, gone := HTTP(strings.Replace(server.URL, "http://", "http://user:pass-word@", 1)).Machines(t.Context())
		for _, err := range []error{err, gone} {
			if err == nil || strings.Contains(err.Error(), "pass-word") || !strings.Contains(err.Error(), "user") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func TestBelongs(t *testing.T) {
	m := Machine{ProviderID: "x:///1", Marks: []string{"ns/name"}}
	if !m.Belongs("x:///1") || !m.Belongs("", "other", "name") || m.Belongs("", "") || m.Belongs("x:///2", "nam2") {
		t.Error("a machine belongs by its provider ID or a word in its marks, and by nothing else")
	}
}
