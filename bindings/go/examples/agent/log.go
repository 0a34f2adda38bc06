package main

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

// logger prints lines in klog's format. Each line is one write, so that none is lost when the process
// is killed.
type logger struct {
	quiet bool
	mutex sync.Mutex
}

func (l *logger) info(message string, pairs ...any) {
	if !l.quiet {
		l.always(message, pairs...)
	}
}

func (l *logger) always(message string, pairs ...any) {
	var line strings.Builder
	now := time.Now()
	fmt.Fprintf(&line, "I%02d%02d %s %7d agent] %q", now.Month(), now.Day(), now.Format("15:04:05.000000"), os.Getpid(), message)
	for i := 0; i+1 < len(pairs); i += 2 {
		switch value := pairs[i+1].(type) {
		case string:
			fmt.Fprintf(&line, " %v=%q", pairs[i], value)
		case error:
			fmt.Fprintf(&line, " %v=%q", pairs[i], value.Error())
		default:
			fmt.Fprintf(&line, " %v=%v", pairs[i], value)
		}
	}
	line.WriteByte('\n')
	l.mutex.Lock()
	defer l.mutex.Unlock()
	os.Stdout.WriteString(line.String())
}
