// Command waybill-existing tells the nodes of a cluster which pull Secrets and service accounts
// exist, so that `waybill reconcile --published` forgets the others there. It lists their metadata,
// and writes their UIDs, nothing else, into one ConfigMap. It runs in a pod of its own, once; a
// CronJob starts it. It has the standard library alone, and no C.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// version is set when it is built.
var version = "unknown"

func main() {
	configMap := flag.String("configmap", "waybill-existing", "the ConfigMap that is written; it must exist")
	namespace := flag.String("namespace", "", "its namespace; else that of the pod")
	account := flag.String("account", "/var/run/secrets/kubernetes.io/serviceaccount", "the service account's directory")
	deadline := flag.Duration("deadline", 5*time.Minute, "how long it may take")
	shows := flag.Bool("version", false, "print the version")
	flag.Parse()
	if *shows {
		fmt.Println("waybill-existing", version)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), *deadline)
	defer cancel()
	if err := run(ctx, *account, *namespace, *configMap); err != nil {
		fmt.Fprintf(os.Stderr, "waybill-existing: %v; nothing was published, nodes go on with the last list\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, account, namespace, configMap string) error {
	cluster, err := inPod(account)
	if err != nil {
		return err
	}
	if namespace == "" {
		text, err := os.ReadFile(filepath.Join(account, "namespace"))
		if err != nil {
			return fmt.Errorf("%w: give -namespace, or run it in a pod with a service account", err)
		}
		namespace = strings.TrimSpace(string(text))
	}
	existing, err := cluster.listExisting(ctx, time.Now)
	if err != nil {
		return err
	}
	bytes, err := existing.encode()
	if err != nil {
		return err
	}
	if err := cluster.publish(ctx, namespace, configMap, bytes, existing); err != nil {
		return err
	}
	fmt.Printf("published %s/%s: %d Secrets and %d service accounts as of %s, %d bytes\n", namespace, configMap,
		len(existing.secrets), len(existing.serviceAccounts), existing.asOf.Format(time.RFC3339), len(bytes))
	return nil
}

// inPod finds the API server as every pod does.
func inPod(account string) (*cluster, error) {
	host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return nil, errors.New("KUBERNETES_SERVICE_HOST and _PORT are not set: it runs in a pod of the cluster")
	}
	authority, err := os.ReadFile(filepath.Join(account, "ca.crt"))
	if err != nil {
		return nil, fmt.Errorf("%w: the pod needs its service account's token (automountServiceAccountToken)", err)
	}
	token, err := os.ReadFile(filepath.Join(account, "token"))
	if err != nil {
		return nil, fmt.Errorf("%w: the pod needs its service account's token (automountServiceAccountToken)", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("%s/ca.crt has no certificate", account)
	}
	transport := &http.Transport{
		TLSClientConfig:       &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:   10 * time.Second,
		ResponseHeaderTimeout: time.Minute,
	}
	return &cluster{
		server: "https://" + net.JoinHostPort(host, port),
		token:  strings.TrimSpace(string(token)),
		client: &http.Client{
			Transport: transport,
			// The token goes to nobody else.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}
