package arm

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
)

// page answers a part of a list, which is ordered by sequence numbers, so that a token stays good while items come and go.
func page[T any](s *Server, in *request, items []T, sequence func(T) int, show func(T) any) (reply, error) {
	after, err := pageAfter(in)
	if err != nil {
		return reply{}, err
	}
	body := pageBody{Value: []any{}}
	for _, item := range items {
		if sequence(item) <= after {
			continue
		}
		if len(body.Value) == s.options.PageSize {
			body.NextLink = s.nextLink(in, after)
			break
		}
		body.Value = append(body.Value, show(item))
		after = sequence(item)
	}
	return ok(body)
}

// pageAfter is the sequence number of the last item of the page before, 0 for the first page.
func pageAfter(in *request) (int, error) {
	token := in.http.URL.Query().Get("$skiptoken")
	if token == "" {
		return 0, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(token)
	after, numberErr := strconv.Atoi(string(raw))
	if err != nil || numberErr != nil {
		return 0, fail(http.StatusBadRequest, "InvalidSkipToken", "The skip token is invalid.")
	}
	return after, nil
}

type pageBody struct {
	Value    []any  `json:"value"`
	NextLink string `json:"nextLink,omitempty"`
}

func (s *Server) nextLink(in *request, last int) string {
	query := in.http.URL.Query()
	query.Set("$skiptoken", base64.RawURLEncoding.EncodeToString(fmt.Append(nil, last)))
	return s.endpoint + in.http.URL.Path + "?" + query.Encode()
}
