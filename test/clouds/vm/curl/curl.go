// Package curl is a stand-in for curl on hosts that have none: the options that the programs of a
// machine use, with curl's exit codes. TLS is always verified. See https://curl.se/docs/manpage.html.
package curl

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/pkg/errors"
)

// Exit codes of curl.
const (
	exitOK           = 0
	exitUsage        = 2
	exitURL          = 3
	exitResolve      = 6
	exitConnect      = 7
	exitHTTP         = 22
	exitWrite        = 23
	exitRead         = 26
	exitTimeout      = 28
	exitTLS          = 35
	exitReceive      = 56
	exitCertProblem  = 58
	exitUntrusted    = 60
	exitCACertFile   = 77
	defaultTransport = 300 * time.Second
)

// Main runs curl with the arguments and returns its exit code.
func Main(ctx context.Context, arguments []string, stdin io.Reader, stdout, stderr io.Writer) int {
	o := &options{}
	if code, err := o.parse(arguments, stdin); err != nil {
		return o.complain(stderr, code, err)
	}
	if o.url == "" {
		return o.complain(stderr, exitUsage, errors.New("no URL specified"))
	}
	code, err := transfer(ctx, o, stdin, stdout)
	if err != nil {
		return o.complain(stderr, code, err)
	}
	return code
}

// complain writes the error unless -s is set without -S.
func (o *options) complain(stderr io.Writer, code int, err error) int {
	if !o.silent || o.showError {
		_, _ = fmt.Fprintf(stderr, "curl: (%d) %v\n", code, err)
	}
	return code
}

// transfer sends the one request and writes the answer.
func transfer(ctx context.Context, o *options, stdin io.Reader, stdout io.Writer) (int, error) {
	transport, code, err := o.transport()
	if err != nil {
		return code, err
	}
	limit := o.maxTime
	if limit == 0 {
		limit = defaultTransport
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	request, code, err := o.request(ctx, stdin)
	if err != nil {
		return code, err
	}
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	response, err := client.Do(request)
	if err != nil {
		o.writeOut(stdout, 0)
		return exitCode(err), err
	}
	defer func() { _ = response.Body.Close() }()
	code, err = o.save(response, stdout)
	o.writeOut(stdout, response.StatusCode)
	return code, err
}

// save writes headers and body to their files. With -f the body of an error status is left out.
func (o *options) save(response *http.Response, stdout io.Writer) (int, error) {
	if o.dumpHeader != "" {
		var text strings.Builder
		_, _ = fmt.Fprintf(&text, "%s %s\r\n", response.Proto, response.Status)
		_ = response.Header.Write(&text)
		text.WriteString("\r\n")
		if o.dumpHeader == "-" {
			_, _ = io.WriteString(stdout, text.String())
		} else if err := os.WriteFile(o.dumpHeader, []byte(text.String()), 0o600); err != nil {
			return exitWrite, err
		}
	}
	if o.fail && response.StatusCode >= http.StatusBadRequest {
		return exitHTTP, errors.Errorf("The requested URL returned error: %d", response.StatusCode)
	}
	target := stdout
	if o.output != "" && o.output != "-" {
		file, err := os.OpenFile(o.output, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644) // As curl does, subject to the umask.
		if err != nil {
			return exitWrite, errors.Wrap(err, "Failure writing output to destination")
		}
		defer func() { _ = file.Close() }()
		target = file
	}
	if _, err := io.Copy(target, response.Body); err != nil {
		if code := exitCode(err); code == exitTimeout {
			return code, err
		}
		return exitReceive, err
	}
	return exitOK, nil
}

// writeOut writes what -w requests.
func (o *options) writeOut(stdout io.Writer, status int) {
	if o.writeFormat == "" {
		return
	}
	text := strings.NewReplacer(`\n`, "\n", `\t`, "\t", "%{http_code}", fmt.Sprintf("%03d", status),
		"%{response_code}", fmt.Sprintf("%03d", status), "%%", "%").Replace(o.writeFormat)
	_, _ = io.WriteString(stdout, text)
}

// request builds the request of the options.
func (o *options) request(ctx context.Context, stdin io.Reader) (*http.Request, int, error) {
	method := o.method
	var body io.Reader
	if o.data != nil {
		body = strings.NewReader(*o.data)
		if method == "" {
			method = http.MethodPost
		}
	}
	target := o.url
	if !strings.Contains(target, "://") {
		target = "http://" + target
	}
	request, err := http.NewRequestWithContext(ctx, method, target, body)
	if err != nil {
		return nil, exitURL, err
	}
	request.Header.Set("User-Agent", "curl/0.0 (simulated)")
	request.Header.Set("Accept", "*/*")
	if o.data != nil {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	lines, code, err := o.headerLines(stdin)
	if err != nil {
		return nil, code, err
	}
	for _, line := range lines {
		name, value, ok := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch {
		case !ok:
			continue
		case value == "":
			request.Header.Del(name)
		case strings.EqualFold(name, "Host"):
			request.Host = value
		default:
			request.Header.Set(name, value)
		}
	}
	return request, exitOK, nil
}

// transport has the timeouts, the authorities and the client certificate of the options.
func (o *options) transport() (*http.Transport, int, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if o.caCert != "" {
		raw, err := os.ReadFile(o.caCert)
		if err != nil {
			return nil, exitCACertFile, errors.Wrap(err, "error setting certificate verify locations")
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(raw) {
			return nil, exitCACertFile, errors.New("error setting certificate verify locations: no certificate found")
		}
	}
	if o.cert != "" {
		key := o.key
		if key == "" {
			key = o.cert
		}
		pair, err := tls.LoadX509KeyPair(o.cert, key)
		if err != nil {
			return nil, exitCertProblem, errors.Wrap(err, "could not load the client certificate")
		}
		config.Certificates = []tls.Certificate{pair}
	}
	dialer := &net.Dialer{Timeout: o.connectTimeout}
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext, TLSClientConfig: config, ForceAttemptHTTP2: true,
		TLSHandshakeTimeout: o.connectTimeout, DisableKeepAlives: true,
	}, exitOK, nil
}

// exitCode classifies a failed transfer.
func exitCode(err error) int {
	var dns *net.DNSError
	var timeout net.Error
	var unknown x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	var verification *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var alert tls.AlertError
	var operation *net.OpError
	switch {
	case errors.As(err, &timeout) && timeout.Timeout() || errors.Is(err, context.DeadlineExceeded):
		return exitTimeout
	case errors.As(err, &dns):
		return exitResolve
	case errors.As(err, &unknown), errors.As(err, &host), errors.As(err, &invalid), errors.As(err, &verification):
		return exitUntrusted
	case errors.As(err, &record), errors.As(err, &alert):
		return exitTLS
	case errors.As(err, &operation) && operation.Op == "dial":
		return exitConnect
	}
	return exitReceive
}
