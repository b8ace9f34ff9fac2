package entra

import (
	"net/http"
	"strconv"
)

// serveManaged is the endpoint that App Service has for managed identities, and whose address is in IDENTITY_ENDPOINT, see
// https://learn.microsoft.com/azure/app-service/overview-managed-identity. It is used instead of that of IMDS since its address can be
// set.
func (f *Front) serveManaged(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	app := f.managed
	call := Call{By: "managedIdentity", Status: http.StatusOK}
	client := r.URL.Query().Get("client_id")
	resource := r.URL.Query().Get("resource")
	switch {
	case r.Header.Get("X-IDENTITY-HEADER") == "" || resource == "":
		call.Status = http.StatusBadRequest
	case app == nil || client != "" && client != app.ClientID:
		call.Status = http.StatusBadRequest
	}
	var token string
	if call.Status == http.StatusOK {
		call.Tenant, call.ClientID = app.Tenant, app.ClientID
		token = f.issue(app)
	}
	f.calls = append(f.calls, call)
	f.mu.Unlock()
	if call.Status != http.StatusOK {
		writeJSON(w, call.Status, map[string]any{"statusCode": call.Status, "message": "No managed identity was found for the parameters."})
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{
		"access_token": token, "expires_on": strconv.FormatInt(f.clock.Now().Add(lifetime).Unix(), 10), "resource": resource,
		"token_type": "Bearer",
	})
}
