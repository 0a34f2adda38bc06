# gnuplot -e "columns='DIR'; out='DIR'; format='svg|png'; what='lru|year'" plots.gp
# Draws what `waybill_sizing --columns DIR` wrote for the four presets.

presets = "edge default dense ci"
array colour[4] = ["#0072b2", "#009e73", "#d55e00", "#cc79a7"]
file(name) = columns . "/" . name . ".tsv"

if (format eq "svg") {
  set terminal svg size 1000,450 font "DejaVu Sans,13" background "white"
} else {
  set terminal pngcairo size 1000,450 font "DejaVu Sans,10.5" background "white"
}
set border 3 lc rgb "#555555"
set tics nomirror out textcolor rgb "#333333"
set grid ytics lc rgb "#dddddd" lt 1 lw 0.7
set style data linespoints
set pointsize 0.7
set datafile separator "\t"
set label 1 "" at screen 0.5,0.95 center font ",15"
set key at graph 0.5,1.13 center horizontal samplen 2.5 spacing 1.15
layout = "margins 0.1,0.985,0.14,0.76 spacing 0.1,0"

if (what eq "lru") {
  set output out . "/sizing." . format
  set label 1 "A simulated node of 1,000 pods: waybill, and an LRU of decoded records in front of files"
  set multiplot layout 1,2 @layout
  set logscale xy
  set xrange [45:4500]
  set xtics (50, 100, 250, 500, 1000, 2000, 4000)
  set xlabel "records that the LRU holds"
  set yrange [100:1000000]
  set ylabel "time of a decision" offset 1.5
  set ytics ("100 ns" 100, "1 µs" 1000, "10 µs" 10000, "100 µs" 100000, "1 ms" 1000000)
  set key maxrows 2
  plot file("dense") using 1:3 title "files + LRU, p99" lc rgb "#d55e00" lw 2.2 pt 7, \
       ""            using 1:2 title "files + LRU, p50" lc rgb "#d55e00" lw 2.2 dt 2 pt 6, \
       ""            using 1:6 with lines title "waybill, p99" lc rgb "#0072b2" lw 2.2, \
       ""            using 1:5 with lines title "waybill, p50" lc rgb "#0072b2" lw 2.2 dt 2

  unset label 1
  unset logscale y
  set yrange [0:103]
  set ylabel "hit rate of the LRU, %"
  set ytics 0,20,100 format "%.0f"
  plot for [i = 1:4] file(word(presets, i)) using 1:4 title word(presets, i) \
    lc rgb colour[i] lw 2.2 pt 7
  unset multiplot
}

if (what eq "year") {
  set output out . "/sizing-year." . format
  set label 1 "How what is stored for an image grows on four simulated nodes"
  set multiplot layout 1,2 @layout
  set style data lines
  set xrange [0:*]
  set xlabel "days"
  set yrange [0:*]
  set ylabel "Secrets in a record, mean"
  plot for [i = 1:4] file(word(presets, i) . "-year") using 1:3 title word(presets, i) \
    lc rgb colour[i] lw 2.2
  unset label 1
  set ylabel "KiB on disk for a record"
  set key maxrows 2
  plot for [i = 1:4] file(word(presets, i) . "-year") using 1:($5/$2/1024) title word(presets, i) \
      lc rgb colour[i] lw 2.2, \
    for [i = 1:4] file(word(presets, i) . "-year") using 1:($6/$2/1024) \
      title (i == 4 ? "dotted: as files" : "") lc rgb colour[i] lw 1.8 dt 3
  unset multiplot
}
