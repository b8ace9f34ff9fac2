package session

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// limited is an HTTP client whose calls, bodies included, end in time.
type limited struct {
	aws.HTTPClient
	timeout time.Duration
}

// Do makes the call.
func (l limited) Do(request *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(request.Context(), l.timeout)
	response, err := l.HTTPClient.Do(request.WithContext(ctx))
	if err != nil {
		cancel()
		return nil, err // It is another client's error, for the SDK.
	}
	response.Body = &endedBody{response.Body, cancel}
	return response, nil
}

// endedBody ends the time of a call once its answer has been read.
type endedBody struct {
	io.ReadCloser
	end func()
}

// Close ends the call.
func (b *endedBody) Close() error {
	defer b.end()
	return b.ReadCloser.Close() // It is another client's error, for the SDK.
}
