// Command streaming is an example of a streaming server's front on waybill: POST /prepare/exec with
// form values container and command answers with a URL that opens one stream, once. What streams
// (a runtime, by SPDY or WebSocket) is left out: the stream here is a line of text.
//
//	streaming -directory /run/streams -listen 127.0.0.1:10010 &
//	curl -d container=c1 -d command=ls http://127.0.0.1:10010/prepare/exec
package main

import (
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"waybill.dev/go"
)

func main() {
	directory := flag.String("directory", "", "where the store is kept; made if missing")
	listen := flag.String("listen", "127.0.0.1:0", "a loopback address: whoever reaches it can prepare streams")
	flag.Parse()
	if *directory == "" || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	store, err := waybill.OpenStreaming(waybill.StreamingOptions{Directory: *directory, Witness: waybill.WitnessNone()})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	if report := store.Report(); report.Voided > 0 {
		log.Printf("%d tokens of before are void: %s", report.Voided, report.VoidReason)
	}
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	log.Printf("http://%s", listener.Addr())
	log.Fatal(http.Serve(listener, front(store, "http://"+listener.Addr().String())))
}

// front prepares streams, and opens them.
func front(store *waybill.StreamingStore, base string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /prepare/exec", func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		request := waybill.StreamingRequest{Kind: waybill.StreamExec, ContainerID: r.Form.Get("container"),
			Command: r.Form["command"], Stdout: true}
		token, err := store.Prepare(request)
		if err != nil {
			refuse(w, err)
			return
		}
		fmt.Fprintf(w, "%s/%v/%s\n", base, request.Kind, token)
	})
	mux.Handle("/", openOnce(store, func(w http.ResponseWriter, _ *http.Request, request waybill.StreamingRequest) {
		fmt.Fprintf(w, "%v in %s: %q\n", request.Kind, request.ContainerID, request.Command)
	}))
	return mux
}

// wholeSeconds rounds up, as Retry-After needs it.
func wholeSeconds(span time.Duration) string {
	return strconv.FormatInt(int64((span+time.Second-1)/time.Second), 10)
}
