package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"sync"
)

// model says who may use which image. It is kept in a log, so that it outlives the agent:
//
//	may REF IMAGE TENANT    before a successful pull is recorded: from now on the store may say yes
//	done REF IMAGE TENANT   after it was recorded: from now on the store must say yes
//	gone REF                before an image is collected: the store need not say yes any more
//	pruned REF              after its record is gone: the store may not say yes any more
//	deleted TENANT          before the tenant's secret is forgotten: as gone
//	forgotten TENANT        after that: as pruned
//
// Anything else is forbidden. TENANT is "*" for public images.
type model struct {
	file  *os.File
	mutex sync.Mutex
	may   map[string]bool // "REF IMAGE TENANT"
	must  map[string]bool
	// How often each tenant's secret was deleted, and created anew.
	deletions map[string]int
}

func openModel(path string) (*model, error) {
	m := &model{may: map[string]bool{}, must: map[string]bool{}, deletions: map[string]int{}}
	if old, err := os.Open(path); err == nil {
		for lines := bufio.NewScanner(old); lines.Scan(); {
			if verb, rest, ok := strings.Cut(lines.Text(), " "); ok {
				m.apply(verb, rest)
			}
		}
		old.Close()
	}
	var err error
	m.file, err = os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	return m, err
}

func (m *model) apply(verb, rest string) {
	switch verb {
	case "may":
		m.may[rest] = true
	case "done":
		m.must[rest] = true
	case "gone":
		drop(m.must, of(rest))
	case "pruned": // what was proven is remembered, for when the image comes back
	case "deleted":
		m.deletions[rest]++
		drop(m.must, by(rest))
	case "forgotten":
		drop(m.may, by(rest))
	}
}

func of(ref string) func(string) bool {
	return func(entry string) bool { return strings.HasPrefix(entry, ref+" ") }
}

func by(tenant string) func(string) bool {
	return func(entry string) bool { return strings.HasSuffix(entry, " "+tenant) }
}

func drop(set map[string]bool, is func(entry string) bool) {
	for key := range set {
		if is(key) {
			delete(set, key)
		}
	}
}

// note writes an entry. When it returns, the entry is in the page cache, and outlives a kill.
func (m *model) note(verb, rest string) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.apply(verb, rest)
	_, err := fmt.Fprintf(m.file, "%s %s\n", verb, rest)
	return err
}

func entry(image, tenant int) string {
	name := tenantName(tenant)
	if public(image) {
		name = "*"
	}
	return imageRef(image) + " " + imageName(image) + " " + name
}

// deletionsOf says how often the tenant's secret was deleted.
func (m *model) deletionsOf(tenant int) int {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.deletions[tenantName(tenant)]
}

// mayUse says whether the store may let the tenant use the image without a pull.
func (m *model) mayUse(image, tenant int) bool {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return preloaded(image) || m.may[entry(image, tenant)]
}

// mustUse says whether the store must let it.
func (m *model) mustUse(image, tenant int) bool {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.must[entry(image, tenant)]
}
