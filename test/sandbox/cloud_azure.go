package sandbox

import (
	"context"
	"fmt"
	"net/http"

	"millwright.dev/test/clouds/tokens"
)

func newAzure() *Cloud {
	return &Cloud{
		Name: "azure", Title: "Azure", Machine: "AzureMachine", Deployment: "workers-azure", SizeField: "vmSize", OtherSize: "Standard_D8s_v5",
		simulatorFile: "bin/azure-simulator",
		simulatorArgs: func(d Delays) []string {
			return []string{"--create-delay=" + d.Pending.String(), "--delete-delay=" + d.ShuttingDown.String()}
		},
		provider: func(s *Sandbox, url string) (args, environment []string) {
			return []string{"--azure-resource-manager=" + url}, []string{
				"IDENTITY_ENDPOINT=" + s.tokens.URL + "/msi/token", "IDENTITY_HEADER=" + tokens.Secret,
			}
		},
		tokens: true,
		leftovers: func(ctx context.Context, c *Cloud) ([]string, error) {
			var left []struct{ Kind, Name string }
			if err := c.Client().Do(ctx, http.MethodGet, "resources", nil, &left); err != nil {
				return nil, err
			}
			names := make([]string, 0, len(left))
			for _, r := range left {
				names = append(names, fmt.Sprintf("%s %s", r.Kind, r.Name))
			}
			return names, nil
		},
	}
}
