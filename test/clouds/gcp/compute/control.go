package compute

import (
	"net/http"
	"strconv"

	"millwright.dev/test/clouds/simulator"
)

// controlRoutes are the control interface: that of all simulators, and what there is in Compute Engine alone.
func (s *Server) controlRoutes() http.Handler {
	c := simulator.NewControl(s.Front)
	c.Get("delays", func() any { return s.Delays() })
	c.Handle("PUT", "delays", func(w http.ResponseWriter, r *http.Request) {
		var d Delays
		if simulator.ReadJSON(w, r, &d) {
			s.SetDelays(d)
			simulator.WriteJSON(w, d)
		}
	})
	c.Handle("GET", "projects/{project}/instances", func(w http.ResponseWriter, r *http.Request) {
		simulator.WriteJSON(w, s.Instances(r.PathValue("project")))
	})
	c.Handle("GET", "projects/{project}/disks", func(w http.ResponseWriter, r *http.Request) {
		simulator.WriteJSON(w, s.Disks(r.PathValue("project")))
	})
	c.Handle("PUT", "quotas/{region}/{name}/{limit}", func(w http.ResponseWriter, r *http.Request) {
		limit, err := strconv.Atoi(r.PathValue("limit"))
		if err != nil {
			http.Error(w, "the limit of a quota is a number", http.StatusBadRequest)
			return
		}
		s.SetQuota(r.PathValue("region"), r.PathValue("name"), limit)
	})
	const one = "projects/{project}/zones/{zone}/instances/{name}/"
	c.Handle("GET", one+"console", func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(s.ConsoleOutput(r.PathValue("project"), r.PathValue("zone"), r.PathValue("name"))))
	})
	change := func(verb string, f func(project, zone, name string) error) {
		c.Handle("POST", one+verb, func(w http.ResponseWriter, r *http.Request) {
			if err := f(r.PathValue("project"), r.PathValue("zone"), r.PathValue("name")); err != nil {
				http.Error(w, err.Error(), http.StatusNotFound)
			}
		})
	}
	change("vanish", s.Vanish)
	change("preempt", s.Preempt)
	c.Handle("POST", "zones/{zone}/exhaust/{machineType}", func(_ http.ResponseWriter, r *http.Request) {
		s.Exhaust(r.PathValue("zone"), r.PathValue("machineType"))
	})
	c.Handle("POST", "restore", func(http.ResponseWriter, *http.Request) { s.Restore() })
	return c
}
