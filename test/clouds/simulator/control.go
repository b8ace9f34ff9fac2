package simulator

import (
	"encoding/json"
	"net/http"
)

// ControlPrefix is the path of the control interface, which no request of a simulated API has.
const ControlPrefix = "/_sim/"

// Control is the control interface below ControlPrefix; Client is its client. It needs no credentials: simulators listen on loopback
// only.
type Control struct{ mux *http.ServeMux }

// NewControl returns the control interface with the call log and the faults of the front.
func NewControl(f *Front) *Control {
	c := &Control{mux: http.NewServeMux()}
	c.Get("calls", func() any { return f.Calls() })
	c.Get("faults", func() any { return f.Faults() })
	c.Handle("DELETE", "calls", func(http.ResponseWriter, *http.Request) { f.ClearCalls() })
	c.Handle("POST", "faults", func(w http.ResponseWriter, r *http.Request) {
		var fault Fault
		if ReadJSON(w, r, &fault) {
			fault.ID = f.AddFault(fault)
			WriteJSON(w, fault)
		}
	})
	c.Handle("DELETE", "faults", func(http.ResponseWriter, *http.Request) { f.ClearFaults() })
	c.Handle("DELETE", "faults/{id}", func(_ http.ResponseWriter, r *http.Request) { f.RemoveFault(r.PathValue("id")) })
	c.Handle("POST", "faults/{id}/release", func(_ http.ResponseWriter, r *http.Request) { f.ReleaseFault(r.PathValue("id")) })
	return c
}

// ServeHTTP answers the control interface.
func (c *Control) ServeHTTP(w http.ResponseWriter, r *http.Request) { c.mux.ServeHTTP(w, r) }

// Handle adds a path, relative to ControlPrefix and with the wildcards of http.ServeMux.
func (c *Control) Handle(method, path string, f http.HandlerFunc) {
	c.mux.HandleFunc(method+" "+ControlPrefix+path, f)
}

// Get adds a path that answers with something as JSON.
func (c *Control) Get(path string, f func() any) {
	c.Handle("GET", path, func(w http.ResponseWriter, _ *http.Request) { WriteJSON(w, f()) })
}

// WriteJSON answers with v.
func WriteJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

// ReadJSON reads the request's body into v; if that fails, it answers so and returns false.
func ReadJSON(w http.ResponseWriter, r *http.Request, v any) bool {
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(v); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return false
	}
	return true
}
