package ec2

import (
	"net/http"
	"regexp"
	"strings"
	"time"
)

// authorization is the form of a Signature Version 4 header, see
// https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv.html.
var authorization = regexp.MustCompile(`^AWS4-HMAC-SHA256 ` +
	`Credential=([^/, ]+)/([0-9]{8})/([a-z0-9-]+)/([a-z0-9-]+)/aws4_request, ?` +
	`SignedHeaders=([a-z0-9;-]+), ?Signature=([0-9a-f]{64})$`)

// authenticate checks the form and the scope of a request's signature and returns the access key ID. name is
// the service that the request must be signed for.
// The signature itself is not computed: the simulator knows no secret keys.
func (s *Server) authenticate(r *http.Request, name string) (string, error) {
	header := r.Header.Get("Authorization")
	if header == "" {
		return "", fail("MissingAuthenticationToken", "Request is missing Authentication Token")
	}
	m := authorization.FindStringSubmatch(header)
	if m == nil {
		return "", fail("AuthFailure", "The Authorization header is not a valid AWS4-HMAC-SHA256 signature")
	}
	key, day, region, service, signed := m[1], m[2], m[3], m[4], m[5]
	date := r.Header.Get("X-Amz-Date")
	if _, err := time.Parse("20060102T150405Z", date); err != nil {
		return key, fail("AuthFailure", "The X-Amz-Date header must be an ISO 8601 basic time in UTC")
	}
	headers := ";" + signed + ";"
	switch {
	case region != s.options.Region || service != name:
		return key, fail("AuthFailure", "Credential should be scoped to a valid region and service, not %s/%s", region, service)
	case !strings.HasPrefix(date, day):
		return key, fail("AuthFailure", "The credential date does not match the X-Amz-Date header")
	case !strings.Contains(headers, ";host;") || !strings.Contains(headers, ";x-amz-date;"):
		return key, fail("AuthFailure", "The headers host and x-amz-date must be signed")
	case !s.accepts(key):
		return key, fail("AuthFailure", "AWS was not able to validate the provided access credentials")
	}
	return key, nil
}
