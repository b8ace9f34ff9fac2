package kubeletrules_test

import (
	"errors"
	"math/rand"
	"os"
	"strconv"
	"strings"
	"testing"

	"millwright.dev/bootstrap/cloudconfig/kubeletrules"
)

// Whatever fields come together: what the API server accepts, the real kubelet starts with. KUBELET_SAMPLES is how many are tried.
func TestFields_RandomCombinations_AcceptedOnesStart(t *testing.T) {
	samples := 150
	if given, err := strconv.Atoi(os.Getenv("KUBELET_SAMPLES")); err == nil {
		samples = given
	}
	var fields []kubeletrules.Field
	for _, f := range kubeletrules.Fields() {
		if f.Refused == "" && f.Fixed == nil && !strings.Contains(f.Path, "[]") {
			fields = append(fields, f)
		}
	}
	accepted := 0
	for seed := range int64(samples) {
		random := rand.New(rand.NewSource(seed))
		config := map[string]any{}
		for range 1 + random.Intn(8) {
			f := fields[random.Intn(len(fields))]
			values := valuesOf(f)
			if random.Intn(4) == 0 {
				values = append(values, wrongValuesOf(f)...)
			}
			one, _ := parse(t, sampleOf(f, values[random.Intn(len(values))]))["config"].(map[string]any)
			if random.Intn(3) == 0 {
				for key := range one {
					if !strings.HasPrefix(f.Path, key) {
						delete(one, key) // Without what it needs.
					}
				}
			}
			merge(config, one)
		}
		spec := map[string]any{"config": config}
		if create(t, spec) != nil {
			continue
		}
		accepted++
		// What depends on the version is named by a condition instead.
		if err := start(t, spec); errors.As(err, new(*kubeletError)) {
			t.Errorf("seed %d: %v: %v", seed, config, err)
		}
	}
	if accepted < samples/4 {
		t.Errorf("only %d of %d samples were accepted", accepted, samples)
	}
}

func merge(under, over map[string]any) {
	for key, value := range over {
		below, isObject := under[key].(map[string]any)
		above, both := value.(map[string]any)
		if isObject && both {
			merge(below, above)
		} else {
			under[key] = value
		}
	}
}
