package ec2

import (
	"encoding/json"
	"net/http"

	"millwright.dev/test/clouds/aws/simapi"
)

// controlPrefix is the path of the control interface, which no EC2 request has.
const controlPrefix = "/_sim/"

// controlRoutes are the control interface; package simclient is its client. It asks for no
// credentials: the simulator listens on loopback only.
func (s *Server) controlRoutes() http.Handler {
	mux := http.NewServeMux()
	get := func(path string, f func() any) {
		mux.HandleFunc("GET "+controlPrefix+path, func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, f()) })
	}
	get("calls", func() any { return s.Calls() })
	get("faults", func() any { return s.Faults() })
	get("instances", func() any { return s.Instances() })
	get("volumes", func() any { return s.Volumes() })
	get("network-interfaces", func() any { return s.NetworkInterfaces() })
	get("delays", func() any { return s.Delays() })
	mux.HandleFunc("PUT "+controlPrefix+"delays", func(w http.ResponseWriter, r *http.Request) {
		var d simapi.Delays
		if readJSON(w, r, &d) {
			s.SetDelays(d)
			writeJSON(w, d)
		}
	})
	mux.HandleFunc("DELETE "+controlPrefix+"calls", func(http.ResponseWriter, *http.Request) { s.ClearCalls() })
	mux.HandleFunc("POST "+controlPrefix+"faults", func(w http.ResponseWriter, r *http.Request) {
		var f simapi.Fault
		if readJSON(w, r, &f) {
			f.ID = s.AddFault(f)
			writeJSON(w, f)
		}
	})
	mux.HandleFunc("DELETE "+controlPrefix+"faults", func(http.ResponseWriter, *http.Request) { s.ClearFaults() })
	mux.HandleFunc("DELETE "+controlPrefix+"faults/{id}", func(_ http.ResponseWriter, r *http.Request) {
		s.RemoveFault(r.PathValue("id"))
	})
	mux.HandleFunc("POST "+controlPrefix+"faults/{id}/release", func(_ http.ResponseWriter, r *http.Request) {
		s.ReleaseFault(r.PathValue("id"))
	})
	mux.HandleFunc("GET "+controlPrefix+"instances/{id}/console", func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(s.ConsoleOutput(r.PathValue("id"))))
	})
	change := func(verb string, f func(string) error) {
		mux.HandleFunc("POST "+controlPrefix+"instances/{id}/"+verb, func(w http.ResponseWriter, r *http.Request) {
			if err := f(r.PathValue("id")); err != nil {
				http.Error(w, err.Error(), http.StatusNotFound)
			}
		})
	}
	change("vanish", s.Vanish)
	change("interrupt", s.Interrupt)
	return mux
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

func readJSON(w http.ResponseWriter, r *http.Request, v any) bool {
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(v); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return false
	}
	return true
}
