// Program probe prints what a program in a container can see and do.
package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
)

func main() {
	fmt.Printf("arguments: %v\nenvironment: %v\n", os.Args[1:], os.Environ())
	fmt.Printf("user %d, group %d, process %d\n", os.Getuid(), os.Getgid(), os.Getpid())
	status := map[string]string{}
	content, _ := os.ReadFile("/proc/self/status")
	for _, line := range strings.Split(string(content), "\n") {
		key, value, _ := strings.Cut(line, ":")
		status[key] = strings.TrimSpace(value)
	}
	fmt.Printf("capabilities: effective %s, bounding %s, no new privileges %s\n", status["CapEff"], status["CapBnd"], status["NoNewPrivs"])
	var names []string
	entries, _ := os.ReadDir("/")
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	fmt.Println("files:", strings.Join(names, " "))
	token, err := os.ReadFile("/data/token")
	fmt.Printf("read /data/token: %s", token)
	if err != nil {
		fmt.Print(err)
	}
	fmt.Println()
	for _, dir := range []string{"", "/data", "/volume", "/tmp"} {
		var reason syscall.Errno
		if err := os.WriteFile(dir+"/written", nil, 0o600); errors.As(err, &reason) {
			fmt.Printf("write %s: %v\n", dir+strings.Repeat("/", max(0, 1-len(dir))), reason)
		} else {
			fmt.Printf("write %s: %v\n", dir, err)
		}
	}
}
