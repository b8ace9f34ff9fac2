package drivertest

import (
	"math/rand/v2"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/drivertest/simulation"
)

// userData: what the cloud takes at most is launched, a byte more is refused before anything is asked of the cloud, and is compressed
// where that helps.
func userData[M driver.Object](t *testing.T, p Provider[M]) {
	var limit int
	live(t, p, 1, func(l *life[M]) { limit = l.cloud.Driver(l.cloud.Transport).Traits().UserDataLimit })
	if limit == 0 {
		t.Skip("the cloud has no limit")
	}
	random := rand.New(rand.NewPCG(1, 1))
	text := func(length int, compressible bool) []byte {
		data := make([]byte, length)
		for i := range data {
			if data[i] = 'x'; !compressible {
				data[i] = byte('!' + random.IntN(90))
			}
		}
		return append([]byte("#cloud-config\n# "), data[16:]...)
	}
	type row struct {
		data        []byte
		compression driverv1.UserDataCompression
		runs        bool
	}
	rows := map[string]row{
		"as much as it takes":           {text(limit, false), driverv1.UserDataCompressionNone, true},
		"a byte more":                   {text(limit+1, false), driverv1.UserDataCompressionNone, false},
		"a byte more, which compresses": {text(limit+1, true), driverv1.UserDataCompressionAuto, true},
		"no text":                       {append([]byte("#cloud-config\n"), 0xff, 0xfe, 0), driverv1.UserDataCompressionNone, true},
		"more than compression helps":   {text(3*limit, false), driverv1.UserDataCompressionAuto, false},
	}
	for name, data := range p.UserData {
		rows[name] = row{data, driverv1.UserDataCompressionAuto, true}
	}
	for name, test := range rows {
		t.Run(name, func(t *testing.T) {
			live(t, p, 1, func(l *life[M]) {
				calls := l.calls()
				l.Server().Change(simulation.SecretID, func(obj client.Object) { obj.(*corev1.Secret).Data["value"] = test.data })
				l.begin(ObjectOptions{}, func(obj M) { obj.CommonSpec().UserDataCompression = test.compression })
				if test.runs {
					l.runs()
				} else {
					time.Sleep(10 * time.Minute)
					l.Expect(l.ready()).To(HavePrefix("False " + driverv1.InvalidConfigurationReason))
					l.Expect(calls(l.cloud.Launches)).To(BeZero())
				}
				l.remove()
			})
		})
	}
}
