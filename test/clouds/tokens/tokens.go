// Package tokens issues access tokens as clouds do to programs that run on them, for simulated clouds that accept any token.
package tokens

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

// life is how long an access token is valid.
const life = time.Hour

// Secret is what proves to the endpoint for managed identities that a process on the same machine asks.
const Secret = "simulated"

// Handler issues access tokens as clouds do to programs that they run: Azure's App Service to a managed identity
// (https://learn.microsoft.com/azure/app-service/overview-managed-identity#rest-endpoint-reference), since the address of the service for
// virtual machines cannot be changed, and the metadata service of Compute Engine to a service account
// (https://cloud.google.com/compute/docs/access/authenticate-workloads).
func Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /msi/token", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-IDENTITY-HEADER") != Secret {
			http.Error(w, "the header X-IDENTITY-HEADER is missing", http.StatusUnauthorized)
			return
		}
		answer(w, map[string]any{
			"access_token": "simulated", "token_type": "Bearer", "resource": r.URL.Query().Get("resource"),
			"expires_on": strconv.FormatInt(time.Now().Add(life).Unix(), 10),
		})
	})
	mux.HandleFunc("GET /computeMetadata/v1/instance/service-accounts/default/token", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Metadata-Flavor") != "Google" {
			http.Error(w, "the header Metadata-Flavor is missing", http.StatusForbidden)
			return
		}
		w.Header().Set("Metadata-Flavor", "Google")
		answer(w, map[string]any{"access_token": "simulated", "token_type": "Bearer", "expires_in": int(life / time.Second)})
	})
	return mux
}

func answer(w http.ResponseWriter, body map[string]any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body)
}
