package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/kubelet/images/pullmanager"
	"waybill.dev/go"
	"waybill.dev/go/kubelet"
)

// quiet logs nowhere: the comparison is not about logging.
var quiet = klog.NewContext(context.Background(), logr.Discard())

// peer is one way to keep the records.
type peer struct {
	name     string
	accessor pullmanager.PullRecordsAccessor
	remove   func(ref string) error // a record
	manager  pullmanager.ImagePullManager
	close    func() error
}

const (
	overFiles    = "files"    // the kubelet's manager over its files
	overCache    = "cache"    // with its cache in front of them, as in a kubelet
	overAccessor = "accessor" // the kubelet's manager over waybill
	overWaybill  = "waybill"  // our manager
)

// A full cache is not authoritative.
const cacheSize = 2000

// noImages is a runtime without images: no peer has anything to replay or to judge.
type noImages struct{ kubecontainer.ImageService }

func (noImages) ListImages(context.Context) ([]kubecontainer.Image, error) { return nil, nil }

func (noImages) GetImageRef(context.Context, kubecontainer.ImageSpec) (string, error) { return "", nil }

// makePeers makes each peer with the same records in a folder of its own.
func makePeers(directory string, records []*kubeletconfig.ImagePulledRecord) (peers []*peer, err error) {
	defer func() {
		if err != nil {
			closeAll(peers)
		}
	}()
	for _, name := range []string{overFiles, overCache, overAccessor, overWaybill} {
		made, err := makePeer(name, filepath.Join(directory, name), records)
		if err != nil {
			return peers, fmt.Errorf("make %s: %w", name, err)
		}
		peers = append(peers, made)
	}
	return peers, nil
}

func closeAll(peers []*peer) {
	for _, p := range peers {
		if p.close == nil {
			continue
		}
		if err := p.close(); err != nil {
			fmt.Fprintf(os.Stderr, "close %s: %v\n", p.name, err)
		}
	}
}

func makePeer(name, directory string, records []*kubeletconfig.ImagePulledRecord) (*peer, error) {
	p := &peer{name: name}
	if name == overFiles || name == overCache {
		accessor, err := pullmanager.NewFSPullRecordsAccessor(logr.Discard(), directory)
		if err != nil {
			return nil, err
		}
		p.accessor = accessor
	} else {
		policy, err := kubelet.VerificationPolicy(kubeletconfig.AlwaysVerify, nil)
		if err != nil {
			return nil, err
		}
		options := waybill.Options{Directory: directory, Witness: waybill.WitnessNone(), Policy: policy, Rules: waybill.RulesKubelet}
		store, err := waybill.Open(quiet, options)
		if err != nil {
			return nil, err
		}
		p.close = store.Close
		if p.accessor, err = kubelet.NewRecordsAccessor(store); err != nil {
			return p, err
		}
		if name == overWaybill {
			if err := writeRecords(p, records); err != nil {
				return p, err
			}
			if err := store.Close(); err != nil {
				return p, err
			}
			options.Rules = waybill.RulesClosed
			if store, err = waybill.Open(quiet, options); err != nil {
				return p, err
			}
			p.close = store.Close
			p.remove = func(ref string) error { return store.DeleteRecord(waybill.ImageCopy{ImageRef: ref}) }
			p.manager, err = kubelet.NewImagePullManager(store, noImages{})
			return p, err
		}
	}
	if err := writeRecords(p, records); err != nil {
		return p, err
	}
	stripes := int32(runtime.NumCPU())
	if name == overCache { // created last, so that it is filled from the files
		p.accessor = pullmanager.NewCachedPullRecordsAccessor(logr.Discard(), p.accessor, cacheSize, cacheSize, stripes)
	}
	p.remove = func(ref string) error { return p.accessor.DeleteImagePulledRecord(logr.Discard(), ref) }
	manager, err := pullmanager.NewImagePullManager(quiet, p.accessor, pullmanager.AlwaysVerifyImagePullPolicy(), noImages{}, stripes)
	if err != nil {
		return p, err
	}
	p.manager = manager
	return p, nil
}

func writeRecords(to *peer, records []*kubeletconfig.ImagePulledRecord) error {
	for _, record := range records {
		if err := to.accessor.WriteImagePulledRecord(logr.Discard(), record); err != nil {
			return err
		}
	}
	return nil
}
