// Package registry asks a registry itself, past every mirror, whether credentials open an image.
package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/distribution/reference"
	"oras.land/oras-go/v2/registry/remote/auth"
)

// Answer is a registry's.
type Answer int

const (
	// Unknown: the registry was not reached, or said neither yes nor no. The error says why.
	Unknown Answer = iota
	// Yes: it would give the manifest to who shows these credentials.
	Yes
	// No: it would not. What does not exist and what may not be seen are the same to many registries.
	No
)

func (a Answer) String() string { return [...]string{"unknown", "yes", "no"}[a] }

// Credential is what a pull showed. The zero value is none at all.
type Credential struct {
	Username, Password string
	IdentityToken      string // to get an access token with
	RegistryToken      string // an access token
}

// Client asks. The zero value is ready, and safe for any number of goroutines.
type Client struct {
	// For one question with all of its requests; 0: DefaultTimeout.
	Timeout time.Duration
	// nil: a client's own, which heeds HTTPS_PROXY and the system's certificates.
	Transport http.RoundTripper
	// Registries, as host or host:port, that are asked without TLS. Those of the loopback are anyway.
	PlainHTTP []string
}

// DefaultTimeout is short: a pod waits for the answer.
const DefaultTimeout = 5 * time.Second

// manifests are the forms of a manifest that runtimes pull.
const manifests = "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json, " +
	"application/vnd.docker.distribution.manifest.list.v2+json, application/vnd.docker.distribution.manifest.v2+json"

var shared = func() http.RoundTripper {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxResponseHeaderBytes = 64 << 10
	return t
}()

// Ask asks for the head of a manifest: of the digest, or if there is none of what the image names. The
// answer depends on these credentials alone: nothing is kept from one question to the next.
func (c *Client) Ask(ctx context.Context, image, digest string, credential Credential) (Answer, error) {
	at, err := c.manifestURL(image, digest)
	if err != nil {
		return Unknown, err
	}
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(c.Timeout, DefaultTimeout))
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodHead, at.String(), nil)
	if err != nil {
		return Unknown, err
	}
	request.Header.Set("Accept", manifests)
	transport := c.Transport
	if transport == nil {
		transport = shared
	}
	asked := &statuses{RoundTripper: transport}
	if credential.Username == "" || credential.Password == "" {
		credential.Username, credential.Password = "", ""
	}
	client := auth.Client{
		Client: &http.Client{Transport: asked, CheckRedirect: checkRedirect},
		Header: http.Header{"User-Agent": {"waybill"}},
		Credential: func(_ context.Context, host string) (auth.Credential, error) {
			if host != at.Host {
				return auth.EmptyCredential, nil
			}
			return auth.Credential{Username: credential.Username, Password: credential.Password,
				RefreshToken: credential.IdentityToken, AccessToken: credential.RegistryToken}, nil
		},
	}
	response, err := client.Do(request)
	if err != nil {
		// A service that makes tokens says no, too, and a registry that wants credentials where there are none.
		if asked.ofTokens && (asked.last == http.StatusUnauthorized || asked.last == http.StatusForbidden) ||
			errors.Is(err, auth.ErrBasicCredentialNotFound) {
			return No, nil
		}
		return Unknown, fmt.Errorf("ask %s for %s: %w", at.Host, at.Path, err)
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 4<<10))
	_ = response.Body.Close()
	by := response.Request.URL.Host
	switch status := response.StatusCode; {
	case status == http.StatusOK: // also where the registry sent us
		if got := response.Header.Get("Docker-Content-Digest"); digest != "" && got != "" && got != digest {
			return Unknown, fmt.Errorf("ask %s for %s: it answers with %q", at.Host, at.Path, got)
		}
		return Yes, nil
	case by == at.Host && (status == http.StatusUnauthorized || status == http.StatusForbidden || status == http.StatusNotFound):
		return No, nil
	default:
		return Unknown, fmt.Errorf("ask %s for %s: %s answers %s", at.Host, at.Path, by, response.Status)
	}
}

// manifestURL completes names as the kubelet and containerd do.
func (c *Client) manifestURL(image, digest string) (*url.URL, error) {
	named, err := reference.ParseDockerRef(image)
	if err != nil {
		return nil, fmt.Errorf("image %q: %w", image, err)
	}
	if digest == "" {
		switch r := named.(type) {
		case reference.Digested:
			digest = r.Digest().String()
		case reference.Tagged:
			digest = r.Tag()
		default:
			return nil, fmt.Errorf("image %q has neither tag nor digest", image)
		}
	}
	host := reference.Domain(named)
	scheme := "https"
	if c.isPlain(host) {
		scheme = "http"
	}
	if host == "docker.io" {
		host = "registry-1.docker.io"
	}
	return &url.URL{Scheme: scheme, Host: host, Path: "/v2/" + reference.Path(named) + "/manifests/" + digest}, nil
}

func (c *Client) isPlain(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	if address, err := netip.ParseAddr(strings.Trim(name, "[]")); err == nil && address.IsLoopback() || name == "localhost" {
		return true
	}
	for _, plain := range c.PlainHTTP {
		if plain == host {
			return true
		}
	}
	return false
}

// checkRedirect stays with TLS. To another origin the client takes no credentials along.
func checkRedirect(request *http.Request, via []*http.Request) error {
	if len(via) >= 5 {
		return errors.New("it sends on and on")
	}
	if via[0].URL.Scheme == "https" && request.URL.Scheme != "https" {
		return fmt.Errorf("it sends to %s, without TLS", request.URL.Host)
	}
	return nil
}

// statuses remembers the last one, and whether it was of a service that makes tokens.
type statuses struct {
	http.RoundTripper
	last     int
	ofTokens bool
}

func (s *statuses) RoundTrip(request *http.Request) (*http.Response, error) {
	s.last, s.ofTokens = 0, request.Method != http.MethodHead
	response, err := s.RoundTripper.RoundTrip(request)
	if err == nil {
		s.last = response.StatusCode
	}
	return response, err
}
