package instance

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"syscall"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// unsentError means that a call got no connection, so that it had no effect for certain.
type unsentError struct {
	// host and port that the call was for, as the endpoint has them.
	host string
	// service that the call is of, by the SDK's name, which is also in the name of the variable with its endpoint.
	service string
	err     error
}

// Error names the host and what to check. It has nothing that differs each time, such as addresses and local ports.
func (e *unsentError) Error() string {
	why := ""
	if reason := e.reason(); reason != "" {
		why = " (" + reason + ")"
	}
	return fmt.Sprintf("no connection to %s%s: check the region's name, the endpoint (AWS_ENDPOINT_URL_%s) and the provider's "+
		"network: DNS, routes, firewall, proxy", e.host, why, strings.ToUpper(strings.ReplaceAll(e.service, " ", "_")))
}

func (e *unsentError) reason() string {
	var dns *net.DNSError
	var certificate *tls.CertificateVerificationError
	var authority x509.UnknownAuthorityError
	var timeout interface{ Timeout() bool }
	switch {
	case errors.As(e.err, &dns) && dns.IsNotFound:
		return "its name is not in DNS"
	case errors.As(e.err, &dns):
		return "DNS does not answer for its name"
	case errors.Is(e.err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.As(e.err, &certificate), errors.As(e.err, &authority):
		return "its certificate is not valid or not trusted"
	case errors.Is(e.err, context.DeadlineExceeded), errors.As(e.err, &timeout) && timeout.Timeout():
		return "no answer within the time limit"
	}
	return ""
}

func (e *unsentError) Unwrap() error { return e.err }

// connecting distinguishes the calls that got no connection from those whose answer was lost. It sees each attempt of a call.
func connecting(stack *middleware.Stack) error {
	return stack.Deserialize.Add(middleware.DeserializeMiddlewareFunc("MillwrightConnecting", connect), middleware.After)
}

func connect(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (
	middleware.DeserializeOutput, middleware.Metadata, error,
) {
	var connected atomic.Bool
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }}
	out, metadata, err := next.HandleDeserialize(httptrace.WithClientTrace(ctx, trace), in)
	if err == nil || connected.Load() {
		return out, metadata, err
	}
	unsent := &unsentError{host: "the endpoint", service: awsmiddleware.GetServiceID(ctx), err: err}
	if request, ok := in.Request.(*smithyhttp.Request); ok && request.URL != nil {
		unsent.host = request.URL.Host
	}
	return out, metadata, unsent
}
