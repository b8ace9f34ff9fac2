package sandbox

import (
	"context"
	"fmt"
	"net/http"
	"strings"
)

// sampleProject is the project of the samples.
const sampleProject = "my-project"

func newGCP() *Cloud {
	return &Cloud{
		Name: "gcp", Title: "Compute Engine", Machine: "GCPMachine", Deployment: "workers-gcp", SizeField: "machineType",
		OtherSize:     "e2-standard-8",
		simulatorFile: "bin/compute-simulator",
		simulatorArgs: func(d Delays) []string {
			half := (d.Pending / 2).String()
			return []string{
				"--project=" + sampleProject, "--provisioning-delay=" + half, "--staging-delay=" + half, "--stopping-delay=" + d.ShuttingDown.String(),
			}
		},
		provider: func(s *Sandbox, url string) (args, environment []string) {
			return []string{"--compute-endpoint=" + url + "/compute/v1"},
				[]string{"GCE_METADATA_HOST=" + strings.TrimPrefix(s.tokens.URL, "http://")}
		},
		tokens: true,
		leftovers: func(ctx context.Context, c *Cloud) ([]string, error) {
			var left []string
			for _, kind := range []string{"instances", "disks"} {
				var found []struct{ Name string }
				if err := c.Client().Do(ctx, http.MethodGet, "projects/"+sampleProject+"/"+kind, nil, &found); err != nil {
					return nil, err
				}
				for _, f := range found {
					left = append(left, fmt.Sprintf("%s %s", strings.TrimSuffix(kind, "s"), f.Name))
				}
			}
			return left, nil
		},
	}
}
