package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// cluster is an API server, and who asks it.
type cluster struct {
	server string
	token  string
	client *http.Client
}

const (
	// Objects of a page.
	pageLimit     = "500"
	mostPageBytes = 64 << 20
	// More pages than fit into a ConfigMap: a server that says "continue" for ever.
	mostPages = 2*mostUIDs/500 + 10
	// How often a list may expire under way.
	mostBeginnings = 3
)

// What is listed. A kubelet takes pull credentials from Secrets of these two types only, and a
// Secret's type can't change.
var lists = []struct {
	path, selector string
	into           func(*existing) *[]uid
}{
	{"/api/v1/secrets", "type=kubernetes.io/dockerconfigjson", func(e *existing) *[]uid { return &e.secrets }},
	{"/api/v1/secrets", "type=kubernetes.io/dockercfg", func(e *existing) *[]uid { return &e.secrets }},
	{"/api/v1/serviceaccounts", "", func(e *existing) *[]uid { return &e.serviceAccounts }},
}

var errExpired = errors.New("the list expired before its last page came")

// listExisting lists everything, or returns an error: no part of a list is ever used. A list that
// expires under way begins anew, with a new asOf.
func (c *cluster) listExisting(ctx context.Context, now func() time.Time) (*existing, error) {
	var err error
	for range mostBeginnings {
		all := &existing{asOf: now().UTC().Truncate(time.Second)}
		for _, list := range lists {
			into := list.into(all)
			if err = c.listOne(ctx, list.path, list.selector, into); err != nil {
				break
			}
		}
		if err == nil {
			return all, nil
		}
		if !errors.Is(err, errExpired) {
			break
		}
	}
	return nil, err
}

// page is what is read of a PartialObjectMetadataList: of each object its UID, and no name.
type page struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Continue string `json:"continue"`
	} `json:"metadata"`
	Items []struct {
		Metadata struct {
			UID string `json:"uid"`
		} `json:"metadata"`
	} `json:"items"`
}

func (c *cluster) listOne(ctx context.Context, path, selector string, into *[]uid) error {
	next := ""
	for range mostPages {
		query := url.Values{"limit": {pageLimit}}
		if selector != "" {
			query.Set("fieldSelector", selector)
		}
		if next != "" {
			query.Set("continue", next)
		}
		page, err := c.page(ctx, path+"?"+query.Encode())
		if err != nil {
			return fmt.Errorf("listing %s: %w", path, err)
		}
		for _, item := range page.Items {
			id, err := parseUID(item.Metadata.UID)
			if err != nil {
				return fmt.Errorf("listing %s: %w", path, err)
			}
			*into = append(*into, id)
		}
		if next = page.Metadata.Continue; next == "" {
			return nil
		}
	}
	return fmt.Errorf("listing %s: there are more than %d pages, more than a ConfigMap can hold", path, mostPages)
}

func (c *cluster) page(ctx context.Context, address string) (*page, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.server+address, nil)
	if err != nil {
		return nil, err
	}
	// No other form is accepted: what Secrets hold must not come here.
	request.Header.Set("Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")
	body, err := c.do(request)
	if err != nil {
		return nil, err
	}
	var read page
	if err := json.Unmarshal(body, &read); err != nil {
		return nil, fmt.Errorf("the answer is not whole, or no JSON: %w", err)
	}
	if read.Kind != "PartialObjectMetadataList" {
		return nil, fmt.Errorf("the API server answered with a %.64q instead of metadata", read.Kind)
	}
	return &read, nil
}

// do returns the body of an answer of 200 or 201. Nothing of any other body is in the error: a
// server in between may have put anything there.
func (c *cluster) do(request *http.Request) ([]byte, error) {
	request.Header.Set("Authorization", "Bearer "+c.token)
	request.Header.Set("User-Agent", "waybill-existing/"+version)
	response, err := c.client.Do(request)
	if err != nil {
		// Its text has the URL, and so the key at which a list goes on: a Secret's name.
		var about *url.Error
		if errors.As(err, &about) {
			err = about.Err
		}
		return nil, err
	}
	defer response.Body.Close()
	switch response.StatusCode {
	case http.StatusOK, http.StatusCreated:
	case http.StatusGone:
		return nil, errExpired
	case http.StatusUnauthorized, http.StatusForbidden:
		return nil, fmt.Errorf("%s: the ClusterRole or Role of waybill-existing is missing or not bound", response.Status)
	case http.StatusNotFound:
		return nil, fmt.Errorf("%s: %s is missing", response.Status, request.URL.Path)
	default:
		return nil, fmt.Errorf("%s %s: %s", request.Method, request.URL.Path, response.Status)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, mostPageBytes+1))
	if err == nil && len(body) > mostPageBytes {
		err = fmt.Errorf("the answer has more than %d bytes", mostPageBytes)
	}
	return body, err
}

// publish replaces what the ConfigMap holds. It must be there: so the right to patch that one is
// enough, and none to create any is needed.
func (c *cluster) publish(ctx context.Context, namespace, name string, content []byte, of *existing) error {
	type metadata struct {
		Annotations map[string]string `json:"annotations"`
	}
	body, err := json.Marshal(struct {
		Metadata   metadata          `json:"metadata"`
		BinaryData map[string][]byte `json:"binaryData"`
	}{
		metadata{map[string]string{
			"waybill.dev/as-of":            of.asOf.Format(time.RFC3339),
			"waybill.dev/secrets":          fmt.Sprint(len(of.secrets)),
			"waybill.dev/service-accounts": fmt.Sprint(len(of.serviceAccounts)),
		}},
		map[string][]byte{configMapEntry: content},
	})
	if err != nil {
		return err
	}
	address := c.server + "/api/v1/namespaces/" + url.PathEscape(namespace) + "/configmaps/" + url.PathEscape(name) +
		"?fieldManager=waybill-existing"
	request, err := http.NewRequestWithContext(ctx, http.MethodPatch, address, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/merge-patch+json")
	request.Header.Set("Accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1")
	if _, err := c.do(request); err != nil {
		return fmt.Errorf("writing the ConfigMap: %w", err)
	}
	return nil
}
