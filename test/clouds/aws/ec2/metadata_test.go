package ec2_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	. "github.com/onsi/gomega"

	"millwright.dev/test/clouds/aws/ec2"
)

// ask sends a request to the metadata service and returns the status and the body.
func (a *account) ask(url, method, path string, headers map[string]string) (int, string) {
	request, err := http.NewRequestWithContext(a.ctx, method, url+path, http.NoBody)
	a.Expect(err).NotTo(HaveOccurred())
	for k, v := range headers {
		request.Header.Set(k, v)
	}
	response, err := http.DefaultClient.Do(request)
	a.Expect(err).NotTo(HaveOccurred())
	raw, err := io.ReadAll(response.Body)
	a.Expect(err).NotTo(HaveOccurred())
	a.Expect(response.Body.Close()).To(Succeed())
	return response.StatusCode, string(raw)
}

const (
	ttlHeader   = "X-aws-ec2-metadata-token-ttl-seconds"
	tokenHeader = "X-aws-ec2-metadata-token"
)

func TestMetadataWithTokens(t *testing.T) {
	a := newAccount(t, ec2.Options{})
	id := a.launch(tagged(types.ResourceTypeInstance, tag("Name", "one")))
	service := httptest.NewServer(a.server.Metadata(id))
	defer service.Close()

	status, _ := a.ask(service.URL, http.MethodGet, "/latest/user-data", nil)
	a.Expect(status).To(Equal(http.StatusUnauthorized), "the image requires tokens")
	status, _ = a.ask(service.URL, http.MethodPut, "/latest/api/token", nil)
	a.Expect(status).To(Equal(http.StatusBadRequest))
	status, session := a.ask(service.URL, http.MethodPut, "/latest/api/token", map[string]string{ttlHeader: "60"})
	a.Expect(status).To(Equal(http.StatusOK))
	with := map[string]string{tokenHeader: session}
	for path, want := range map[string]string{
		"/latest/user-data":                             "#cloud-config\n",
		"/latest/meta-data/instance-id":                 id,
		"/latest/meta-data/local-ipv4":                  "10.0.0.4",
		"/latest/meta-data/local-hostname":              "ip-10-0-0-4.ec2.internal",
		"/latest/meta-data/placement/availability-zone": "us-east-1a",
		"/latest/meta-data/placement/region":            "us-east-1",
		"/latest/meta-data/instance-type":               "m5.large",
		"/latest/meta-data/ami-id":                      ec2.DefaultImage,
		"/latest/meta-data/placement/":                  "availability-zone\navailability-zone-id\nregion",
	} {
		status, body := a.ask(service.URL, http.MethodGet, path, with)
		a.Expect(status).To(Equal(http.StatusOK), path)
		a.Expect(body).To(Equal(want), path)
	}
	_, document := a.ask(service.URL, http.MethodGet, "/latest/dynamic/instance-identity/document", with)
	a.Expect(document).To(ContainSubstring(`"instanceId": "` + id + `"`))
	status, _ = a.ask(service.URL, http.MethodGet, "/latest/meta-data/tags/instance/Name", with)
	a.Expect(status).To(Equal(http.StatusNotFound), "tags are not shown by default")

	a.clock.Step(time.Minute)
	status, _ = a.ask(service.URL, http.MethodGet, "/latest/user-data", with)
	a.Expect(status).To(Equal(http.StatusUnauthorized), "the token has expired")

	a.terminate(id)
	a.clock.Step(downDelay)
	status, _ = a.ask(service.URL, http.MethodGet, "/latest/user-data", with)
	a.Expect(status).To(Equal(http.StatusNotFound))
}

func TestMetadataWithoutTokens(t *testing.T) {
	a := newAccount(t, ec2.Options{})
	id := a.launch(func(in *sdk.RunInstancesInput) {
		in.UserData = nil
		in.MetadataOptions = &types.InstanceMetadataOptionsRequest{
			HttpTokens: types.HttpTokensStateOptional, InstanceMetadataTags: types.InstanceMetadataTagsStateEnabled,
		}
	}, tagged(types.ResourceTypeInstance, tag("Name", "one")))
	off := a.launch(func(in *sdk.RunInstancesInput) {
		in.MetadataOptions = &types.InstanceMetadataOptionsRequest{HttpEndpoint: types.InstanceMetadataEndpointStateDisabled}
	})
	service := httptest.NewServer(a.server.Metadata(id))
	defer service.Close()
	status, body := a.ask(service.URL, http.MethodGet, "/latest/meta-data/tags/instance/Name", nil)
	a.Expect(status).To(Equal(http.StatusOK))
	a.Expect(body).To(Equal("one"))
	status, _ = a.ask(service.URL, http.MethodGet, "/latest/user-data", nil)
	a.Expect(status).To(Equal(http.StatusNotFound), "there is none")
	status, _ = a.ask(service.URL, http.MethodGet, "/latest/meta-data/instance-id", map[string]string{tokenHeader: "forged"})
	a.Expect(status).To(Equal(http.StatusUnauthorized))

	closed := httptest.NewServer(a.server.Metadata(off))
	defer closed.Close()
	status, _ = a.ask(closed.URL, http.MethodGet, "/latest/meta-data/instance-id", nil)
	a.Expect(status).To(Equal(http.StatusForbidden))
	a.Expect(aws.ToString(a.describe(off).InstanceId)).To(Equal(off))
}
