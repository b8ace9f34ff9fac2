package entra

import "net/http"

// Redirect sends what is for one host to an address without TLS, for clients that insist on it: a Front behind httptest.NewServer.
type Redirect struct {
	// Host is the authority's, such as login.microsoftonline.com.
	Host string
	// To is host and port of the Front.
	To string
	// Next sends the requests.
	Next http.RoundTripper
}

// RoundTrip sends a request.
func (r *Redirect) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Host == r.Host {
		request = request.Clone(request.Context())
		request.Host, request.URL.Scheme, request.URL.Host = r.Host, "http", r.To
	}
	return r.Next.RoundTrip(request)
}
