package sandbox

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/pkg/errors"

	"millwright.dev/test/controlplane"
)

const (
	// probeInterval is how often the readiness of something that starts is checked.
	probeInterval = 100 * time.Millisecond
	// logTail is how much of a log an error shows.
	logTail = 2000
)

// await calls check until it succeeds; its last error is what is missing.
func await(ctx context.Context, what string, timeout time.Duration, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	ticker := time.NewTicker(probeInterval)
	defer ticker.Stop()
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		var fatal *endedError
		if errors.As(err, &fatal) {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Wrapf(err, "waiting until %s", what)
		case <-ticker.C:
		}
	}
}

// endedError means that a process has exited by itself.
type endedError struct {
	name, log string
}

func (e *endedError) Error() string {
	return fmt.Sprintf("%s exited by itself; the last lines of its log:\n%s", e.name, e.log)
}

func get(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, response.Status)
	}
	return nil
}

func loopbackAddress() (string, error) {
	port, err := controlplane.FreePort()
	if err != nil {
		return "", err
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), nil
}

func tail(path string) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	if len(content) > logTail {
		content = content[len(content)-logTail:]
	}
	return string(content)
}
