// Package apicalls counts and times the calls of AWS clients.
package apicalls

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"millwright.dev/providers/driver"
	"millwright.dev/providers/driver/calls"
)

// Measured counts and times all calls of a client, by the classes that classify finds in their errors. It is one of aws.Config.APIOptions.
func Measured(classify func(action string, err error) error) func(*middleware.Stack) error {
	measure := middleware.InitializeMiddlewareFunc("MillwrightMetrics", func(
		ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
	) (middleware.InitializeOutput, middleware.Metadata, error) {
		action, began := awsmiddleware.GetOperationName(ctx), time.Now()
		out, metadata, err := next.HandleInitialize(ctx, in)
		var classified error
		if err != nil {
			classified = classify(action, err)
		}
		calls.Record("aws", awsmiddleware.GetRegion(ctx), action, time.Since(began), classified)
		return out, metadata, err
	})
	return func(stack *middleware.Stack) error { return stack.Initialize.Add(measure, middleware.After) }
}

// Classify is for services that launch nothing, STS and SQS: it distinguishes throttles, refused credentials and other refusals by their
// code and status. All else is of class Unknown.
func Classify(action string, err error) error {
	var api smithy.APIError
	var answer *smithyhttp.ResponseError
	if !errors.As(err, &api) || !errors.As(err, &answer) {
		return driver.NewUnknownError(action, "", err)
	}
	code, status := api.ErrorCode(), answer.HTTPStatusCode()
	switch {
	case strings.HasPrefix(code, "Throttl"), code == "RequestThrottled", status == http.StatusTooManyRequests:
		return driver.NewThrottleError(action, code, 0, err)
	case status == http.StatusUnauthorized, status == http.StatusForbidden, code == "ExpiredToken", code == "ExpiredTokenException",
		code == "InvalidIdentityToken":
		return driver.NewAuthError(action, code, err)
	case status >= 400 && status < 500 && status != http.StatusRequestTimeout:
		return driver.NewRefusedError(action, code, err)
	}
	return driver.NewUnknownError(action, code, err)
}
