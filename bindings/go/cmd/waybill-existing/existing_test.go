package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

var fixture = "../../../../tests/fixtures/published/existing"

func uidText(kind, number int) string {
	return fmt.Sprintf("%08x-0000-4000-8000-%012x", kind, number)
}

// What an API server has, and how it misbehaves.
type server struct {
	*httptest.Server
	t          *testing.T
	secrets    map[string]int // by type
	accounts   int
	pageSize   int
	answer     func(w http.ResponseWriter, r *http.Request, asked int) bool // true: it answered
	asked      int
	published  []byte
	patches    int
	selectors  []string
	annotation map[string]string
}

func newServer(t *testing.T) *server {
	s := &server{t: t, pageSize: 3,
		secrets:  map[string]int{"kubernetes.io/dockerconfigjson": 7, "kubernetes.io/dockercfg": 1},
		accounts: 4}
	s.Server = httptest.NewTLSServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *server) cluster() *cluster {
	return &cluster{server: s.URL, token: "the-token", client: s.Client()}
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.asked++
	if got := r.Header.Get("Authorization"); got != "Bearer the-token" {
		s.t.Errorf("Authorization: %q", got)
	}
	if s.answer != nil && s.answer(w, r, s.asked) {
		return
	}
	switch {
	case r.Method == http.MethodGet && r.URL.Path == "/api/v1/secrets":
		selector := r.URL.Query().Get("fieldSelector")
		if r.URL.Query().Get("continue") == "" {
			s.selectors = append(s.selectors, selector)
		}
		kind, ok := strings.CutPrefix(selector, "type=")
		if !ok {
			s.t.Errorf("Secrets of every type are listed")
		}
		s.list(w, r, len(kind), s.secrets[kind])
	case r.Method == http.MethodGet && r.URL.Path == "/api/v1/serviceaccounts":
		s.list(w, r, 1, s.accounts)
	case r.Method == http.MethodPatch && r.URL.Path == "/api/v1/namespaces/waybill/configmaps/waybill-existing":
		body, _ := io.ReadAll(r.Body)
		var patch struct {
			Metadata   struct{ Annotations map[string]string }
			BinaryData map[string]string
		}
		if err := json.Unmarshal(body, &patch); err != nil || r.Header.Get("Content-Type") != "application/merge-patch+json" {
			s.t.Errorf("the patch %.100q: %v", body, err)
		}
		s.published, _ = base64.StdEncoding.DecodeString(patch.BinaryData["existing"])
		s.annotation = patch.Metadata.Annotations
		s.patches++
		fmt.Fprint(w, `{"kind":"PartialObjectMetadata"}`)
	default:
		s.t.Errorf("it asks for %s %s", r.Method, r.URL)
		w.WriteHeader(http.StatusNotFound)
	}
}

func (s *server) list(w http.ResponseWriter, r *http.Request, kind, count int) {
	if got := r.Header.Get("Accept"); got != "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1" {
		s.t.Errorf("Accept: %q", got)
	}
	if r.URL.Query().Get("limit") != "500" {
		s.t.Errorf("limit: %q", r.URL.Query().Get("limit"))
	}
	from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
	until := min(from+s.pageSize, count)
	var items []string
	for i := from; i < until; i++ {
		// From the last to the first: the program sorts.
		items = append(items, fmt.Sprintf(`{"metadata":{"name":"n","namespace":"x","uid":%q}}`, uidText(kind, count-i)))
	}
	more := ""
	if until < count {
		more = fmt.Sprintf(`,"continue":"%d"`, until)
	}
	fmt.Fprintf(w, `{"kind":"PartialObjectMetadataList","metadata":{"resourceVersion":"5"%s},"items":[%s]}`,
		more, strings.Join(items, ","))
}

func publishOnce(s *server, now func() time.Time) error {
	cluster := s.cluster()
	all, err := cluster.listExisting(context.Background(), now)
	if err != nil {
		return err
	}
	bytes, err := all.encode()
	if err != nil {
		return err
	}
	return cluster.publish(context.Background(), "waybill", "waybill-existing", bytes, all)
}

func atNoon() time.Time { return time.Date(2026, 11, 26, 12, 0, 0, 999, time.UTC) }

// All pages of what a kubelet pulls with, in the form that tests/cli/published_list_test.cc reads. WAYBILL_REWRITE=1
// writes it anew.
func TestTheFixtureIsWhatItWrites(t *testing.T) {
	s := newServer(t)
	if err := publishOnce(s, atNoon); err != nil {
		t.Fatal(err)
	}
	if want := []string{"type=kubernetes.io/dockerconfigjson", "type=kubernetes.io/dockercfg"}; !slices.Equal(s.selectors, want) {
		t.Errorf("it lists %v", s.selectors)
	}
	if s.annotation["waybill.dev/as-of"] != "2026-11-26T12:00:00Z" || s.annotation["waybill.dev/secrets"] != "8" ||
		s.annotation["waybill.dev/service-accounts"] != "4" {
		t.Errorf("annotations: %v", s.annotation)
	}
	if os.Getenv("WAYBILL_REWRITE") != "" {
		if err := os.WriteFile(fixture, s.published, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(fixture)
	if err != nil || !bytes.Equal(want, s.published) {
		t.Errorf("%s differs: %v", fixture, err)
	}
}

// Whichever request fails, however: nothing is published.
func TestAFailureAtAnyRequestPublishesNothing(t *testing.T) {
	whole := newServer(t)
	if err := publishOnce(whole, atNoon); err != nil {
		t.Fatal(err)
	}
	lists := whole.asked - 1
	if lists < 6 {
		t.Fatalf("only %d requests", lists)
	}
	failures := map[string]func(w http.ResponseWriter){
		"500":         func(w http.ResponseWriter) { w.WriteHeader(http.StatusInternalServerError) },
		"403":         func(w http.ResponseWriter) { w.WriteHeader(http.StatusForbidden) },
		"a redirect":  func(w http.ResponseWriter) { w.Header().Set("Location", "/elsewhere"); w.WriteHeader(302) },
		"no JSON":     func(w http.ResponseWriter) { fmt.Fprint(w, "<html>") },
		"nothing":     func(w http.ResponseWriter) {},
		"half a list": func(w http.ResponseWriter) { fmt.Fprint(w, `{"kind":"PartialObjectMetadataList","items":[{`) },
		"a cut body": func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "1000")
			fmt.Fprint(w, `{"kind":"PartialObjectMetadataList","items":[]}`)
		},
		"whole Secrets": func(w http.ResponseWriter) { fmt.Fprint(w, `{"kind":"SecretList","metadata":{},"items":[]}`) },
		"a status":      func(w http.ResponseWriter) { fmt.Fprint(w, `{"kind":"Status","metadata":{}}`) },
		"no UID": func(w http.ResponseWriter) {
			fmt.Fprint(w, `{"kind":"PartialObjectMetadataList","items":[{"metadata":{"name":"x"}}]}`)
		},
		"another UID": func(w http.ResponseWriter) {
			fmt.Fprint(w, `{"kind":"PartialObjectMetadataList","items":[{"metadata":{"uid":"0000000A-0000-4000-8000-000000000001"}}]}`)
		},
	}
	for name, fail := range failures {
		for at := 1; at <= lists; at++ {
			s := newServer(t)
			s.cluster().client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
			s.answer = func(w http.ResponseWriter, r *http.Request, asked int) bool {
				if asked != at {
					return false
				}
				fail(w)
				return true
			}
			if err := publishOnce(s, atNoon); err == nil || s.patches != 0 {
				t.Errorf("%s at request %d: error %v, %d patches", name, at, err, s.patches)
			}
			s.Close()
		}
	}
}

// Nothing is published by a server that goes on so.
func TestAServerThatMisbehavesPublishesNothing(t *testing.T) {
	goesOn := func(r *http.Request) bool { return r.URL.Query().Get("continue") != "" }
	for name, each := range map[string]struct {
		answer   func(w http.ResponseWriter, r *http.Request) bool
		accounts int
		want     string
		asked    int // at most
	}{
		// A list goes on at a key, which is a Secret's name: no error says it.
		"hangs up": {func(w http.ResponseWriter, r *http.Request) bool {
			if !goesOn(r) {
				return false
			}
			connection, _, _ := w.(http.Hijacker).Hijack()
			connection.Close()
			return true
		}, 4, "listing /api/v1/secrets", 3},
		"always expires": {func(w http.ResponseWriter, r *http.Request) bool {
			if goesOn(r) {
				w.WriteHeader(http.StatusGone)
			}
			return goesOn(r)
		}, 4, "expired", 2 * mostBeginnings},
		"always goes on": {func(w http.ResponseWriter, r *http.Request) bool {
			fmt.Fprint(w, `{"kind":"PartialObjectMetadataList","metadata":{"continue":"x"},"items":[]}`)
			return true
		}, 4, "pages", mostPages},
		"has no ConfigMap": {func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodPatch {
				w.WriteHeader(http.StatusNotFound)
			}
			return r.Method == http.MethodPatch
		}, 4, "is missing", 8},
		"has no service accounts": {nil, 0, "no service account", 8},
	} {
		s := newServer(t)
		s.accounts = each.accounts
		if each.answer != nil {
			s.answer = func(w http.ResponseWriter, r *http.Request, _ int) bool { return each.answer(w, r) }
		}
		err := publishOnce(s, atNoon)
		if err == nil || !strings.Contains(err.Error(), each.want) || strings.Contains(err.Error(), "continue=") || s.patches != 0 || s.asked > each.asked {
			t.Errorf("%s: error %v, %d patches, %d requests", name, err, s.patches, s.asked)
		}
	}
	// Without pull Secrets it may well be.
	s := newServer(t)
	s.secrets = nil
	if err := publishOnce(s, atNoon); err != nil || s.patches != 1 {
		t.Errorf("error %v, %d patches", err, s.patches)
	}
}

func TestAListThatExpiresBeginsAnewWithANewTime(t *testing.T) {
	s := newServer(t)
	s.answer = func(w http.ResponseWriter, r *http.Request, asked int) bool {
		if asked == 4 { // in the middle of the second list
			w.WriteHeader(http.StatusGone)
		}
		return asked == 4
	}
	times := 0
	now := func() time.Time { times++; return atNoon().Add(time.Duration(times) * time.Minute) }
	if err := publishOnce(s, now); err != nil {
		t.Fatal(err)
	}
	if as := int64(binary.BigEndian.Uint64(s.published[32:])); as != atNoon().Unix()+120 {
		t.Errorf("as of %d", as)
	}
	if want, _ := os.ReadFile(fixture); !bytes.Equal(want[headBytes:], s.published[headBytes:]) {
		t.Errorf("what the first attempt listed is in it")
	}
}

func TestMoreThanAConfigMapHoldsIsAnError(t *testing.T) {
	all := existing{asOf: atNoon()}
	for i := range mostUIDs {
		var id uid
		binary.BigEndian.PutUint32(id[:], uint32(i))
		all.serviceAccounts = append(all.serviceAccounts, id)
	}
	if bytes, err := all.encode(); err != nil || len(bytes) > mostBytes {
		t.Errorf("%d bytes: %v", len(bytes), err)
	}
	all.secrets = append(all.secrets, uid{})
	if _, err := all.encode(); err == nil || !strings.Contains(err.Error(), fmt.Sprint(mostUIDs)) {
		t.Errorf("error: %v", err)
	}
}

func TestItFindsTheServerAsAPodDoes(t *testing.T) {
	s := newServer(t)
	account := t.TempDir()
	write := func(name, content string) {
		if err := os.WriteFile(filepath.Join(account, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	address, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", address.Hostname())
	t.Setenv("KUBERNETES_SERVICE_PORT", address.Port())
	write("token", "the-token\n")
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	write("ca.crt", string(authority))
	found, err := inPod(account)
	if err != nil {
		t.Fatal(err)
	}
	if all, err := found.listExisting(context.Background(), atNoon); err != nil || len(all.secrets) != 8 {
		t.Errorf("%v, %v", all, err)
	}
	// A redirect is not followed: the token is the API server's.
	s.answer = func(w http.ResponseWriter, r *http.Request, asked int) bool {
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(http.StatusFound)
		return true
	}
	before := s.asked
	if _, err := found.listExisting(context.Background(), atNoon); err == nil || s.asked != before+1 {
		t.Errorf("error %v after %d requests", err, s.asked-before)
	}
	// Another server in its place.
	s.answer = nil
	other := httptest.NewUnstartedServer(s)
	other.TLS = selfSigned(t)
	other.StartTLS()
	defer other.Close()
	address, _ = url.Parse(other.URL)
	t.Setenv("KUBERNETES_SERVICE_PORT", address.Port())
	found, err = inPod(account)
	if err != nil {
		t.Fatal(err)
	}
	before = s.asked
	if _, err := found.listExisting(context.Background(), atNoon); err == nil || s.asked != before {
		t.Errorf("a stranger was asked: %v", err)
	}
}

func selfSigned(t *testing.T) *tls.Config {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
}
