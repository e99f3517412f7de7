# SPDX-License-Identifier: Apache-2.0
# The demo's picture. Variables from report.py: out, runs, p99_alone, p99_plain, p99_tally, idle, busy.
set terminal pngcairo size 1400,620 font "Sans,12" background "#ffffff" linewidth 1.4
set output out
set encoding utf8
alone = "#4c566a"
plain = "#d1495b"
tally = "#1b998b"
set border 3 linecolor rgb "#888888"
set tics nomirror textcolor rgb "#333333"
set grid ytics xtics linetype 1 linecolor rgb "#e6e6e6"
set multiplot

# Left: the share of requests answered within a time.
set size 0.62,1
set origin 0,0
set title "Latency of the server's requests" font "Sans,15"
set bmargin 7
set logscale x
set format x "%g"
set xlabel "answered within (ms)"
set ylabel "share of requests (%)"
set yrange [0:103]
set xtics (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
set key outside bottom center vertical maxrows 3 reverse Left samplen 2.5 spacing 1.25
set for [p in "50 99"] arrow from graph 0, first p to graph 1, first p nohead dashtype 3 linecolor rgb "#bbbbbb"
set label 1 "p99" at graph 0.005, first 99 offset 0,-0.7 textcolor rgb "#999999"
set label 2 "p50" at graph 0.005, first 50 offset 0,0.7 textcolor rgb "#999999"
plot runs."/plain.cdf" using 1:2 with lines linewidth 2.5 linecolor rgb plain \
         title sprintf("beside the trainer, without Tally (p99 %.1f ms)", p99_plain), \
     runs."/server.cdf" using 1:2 with lines linewidth 2.5 linecolor rgb alone \
         title sprintf("alone (p99 %.1f ms)", p99_alone), \
     runs."/tally.cdf" using 1:2 with lines linewidth 2.5 dashtype "-" linecolor rgb tally \
         title sprintf("beside the trainer, under Tally (p99 %.1f ms)", p99_tally)

# Right: what the trainer does meanwhile.
unset logscale x
unset label 1
unset label 2
unset arrow
set size 0.38,1
set origin 0.62,0
set title "Throughput of the trainer" font "Sans,15"
unset xlabel
set ylabel "steps per second"
set yrange [0:*]
set xtics autofreq
set bmargin 7
set xrange [-0.6:2.6]
set offsets 0,0,graph 0.12,0
unset grid
set grid ytics linetype 1 linecolor rgb "#e6e6e6"
set style fill solid 0.9 noborder
set boxwidth 0.6
set key inside top right samplen 1.5
color(i) = i == 0 ? 0x4c566a : i == 1 ? 0xd1495b : 0x1b998b
plot runs."/bars.dat" using 1:2:(color($1)):xticlabels(5) with boxes linecolor rgb variable notitle, \
     "" using 1:2:3:4 with yerrorbars pointsize 0 linewidth 1.2 linecolor rgb "#333333" notitle, \
     "" using 1:2:(sprintf("%.1f", $2)) with labels offset 0,1.4 font "Sans,13" notitle, \
     idle with lines dashtype 2 linewidth 1.5 linecolor rgb "#e09f3e" \
         title sprintf("what the server leaves (%.0f %% busy)", busy)
unset multiplot
