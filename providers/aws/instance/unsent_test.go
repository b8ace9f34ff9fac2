package instance

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	. "github.com/onsi/gomega"

	"millwright.dev/providers/driver"
)

// TestWhatGotNoConnectionHadNoEffect: only a call that got a connection can have an answer that was lost.
func TestWhatGotNoConnectionHadNoEffect(t *testing.T) {
	plain := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer plain.Close()
	untrusted := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
	untrusted.Config.ErrorLog = log.New(io.Discard, "", 0)
	defer untrusted.Close()
	ended := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-ended }))
	defer silent.Close()
	defer close(ended)
	dial := func(err error) func(context.Context, string, string) (net.Conn, error) {
		return func(_ context.Context, network, _ string) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Net: network, Err: err}
		}
	}
	for name, test := range map[string]struct {
		endpoint string
		dial     func(context.Context, string, string) (net.Conn, error)
		class    driver.Class
		want     string
	}{
		"a name that is not in DNS": {"http://ec2.test:1", dial(&net.DNSError{Err: "no such host", IsNotFound: true}), driver.ClassRefused,
			"no connection to ec2.test:1 (its name is not in DNS): check the region's name"},
		"DNS that fails": {"http://ec2.test:1", dial(&net.DNSError{Err: "server misbehaving"}), driver.ClassRefused, "DNS does not answer for its name"},
		"a closed port":  {"http://ec2.test:1", dial(os.NewSyscallError("connect", syscall.ECONNREFUSED)), driver.ClassRefused, "connection refused"},
		"no route":       {"http://ec2.test:1", dial(os.NewSyscallError("connect", syscall.EHOSTUNREACH)), driver.ClassRefused, "no connection to ec2.test:1: check"},
		"packets that are dropped": {"http://ec2.test:1", func(context.Context, string, string) (net.Conn, error) {
			<-ended
			return nil, net.ErrClosed
		}, driver.ClassRefused, "no answer within the time limit"},
		"a certificate that is not trusted": {untrusted.URL, nil, driver.ClassRefused, "its certificate is not valid or not trusted"},
		"cut before the answer":             {plain.URL, nil, driver.ClassUnknown, "RunInstances: no answer from the API"},
		"no answer":                         {silent.URL, nil, driver.ClassUnknown, "RunInstances: no answer within the time limit"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			transport := http.DefaultTransport.(*http.Transport).Clone()
			if test.dial != nil {
				transport.DialContext = test.dial
			}
			api := NewClient(aws.Config{Region: "us-east-1", BaseEndpoint: &test.endpoint, HTTPClient: &http.Client{Transport: transport},
				Credentials: credentials.NewStaticCredentialsProvider("AKIATEST", "secret", "")})
			limit := time.Minute
			if strings.Contains(test.want, "time limit") {
				limit = time.Second
			}
			var err error
			// On a computer that is busy the time may be over before what is tested has happened.
			for ; limit < 2*time.Minute && driver.ClassOf(err) != test.class; limit *= 4 {
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				_, err = api.RunInstances(ctx, &ec2.RunInstancesInput{MinCount: aws.Int32(1), MaxCount: aws.Int32(1)}, once)
				cancel()
				g.Expect(err).To(HaveOccurred())
				err = classify("RunInstances", err)
			}
			g.Expect(driver.ClassOf(err)).To(Equal(test.class))
			g.Expect(err.Error()).To(ContainSubstring(test.want))
		})
	}
}
