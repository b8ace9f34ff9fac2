package ec2

import (
	"net/http"

	"millwright.dev/test/clouds/aws/simapi"
	"millwright.dev/test/clouds/simulator"
)

// controlRoutes are the control interface; package simclient is its client.
func (s *Server) controlRoutes() http.Handler {
	c := simulator.NewControl(s.Front)
	c.Get("instances", func() any { return s.Instances() })
	c.Get("volumes", func() any { return s.Volumes() })
	c.Get("network-interfaces", func() any { return s.NetworkInterfaces() })
	c.Get("delays", func() any { return s.Delays() })
	c.Handle("PUT", "delays", func(w http.ResponseWriter, r *http.Request) {
		var d simapi.Delays
		if simulator.ReadJSON(w, r, &d) {
			s.SetDelays(d)
			simulator.WriteJSON(w, d)
		}
	})
	c.Handle("GET", "instances/{id}/console", func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(s.ConsoleOutput(r.PathValue("id"))))
	})
	change := func(verb string, f func(string) error) {
		c.Handle("POST", "instances/{id}/"+verb, func(w http.ResponseWriter, r *http.Request) {
			if err := f(r.PathValue("id")); err != nil {
				http.Error(w, err.Error(), http.StatusNotFound)
			}
		})
	}
	change("vanish", s.Vanish)
	change("interrupt", s.Interrupt)
	return c
}
