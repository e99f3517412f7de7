# SPDX-License-Identifier: Apache-2.0
# The picture of bench/colocate. Variables from report.py: out, data, names (systems), cells (their number).
n = words(names)
set terminal svg size 270 + 145 * cells, 800 font "Sans,12" background "#ffffff"
set output out
set datafile missing "?"
set style data histograms
set style histogram clustered gap 1.5
set style fill solid 0.9 noborder
set boxwidth 0.9
set border 3 linecolor rgb "#888888"
set tics nomirror textcolor rgb "#333333"
set grid ytics linetype 1 linecolor rgb "#e6e6e6"
set lmargin 9
set rmargin 24
set bmargin 5
set xtics font ",11"
array shade[8] = [0xd1495b, 0xe09f3e, 0x8d6a9f, 0x7fb7be, 0x1b998b, 0x4c566a, 0xaaaaaa, 0x555555]
set multiplot layout 2,1
set title "p99 of the server's requests, over alone" font "Sans,15"
set logscale y
set yrange [0.5:*]
set key outside top right
set ytics (0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
set arrow 1 from graph 0, first 1 to graph 1, first 1 nohead dashtype 2 linecolor rgb "#4c566a"
plot for [i = 1:n] data using (column(1 + i)):xtic(1) title word(names, i) linecolor rgb shade[i]
unset logscale y
unset arrow 1
unset key
set yrange [0:1.1]
set ytics 0.2
set title "rate of the trainer, over alone" font "Sans,15"
plot for [i = 1:n] data using (column(1 + n + i)):xtic(1) title word(names, i) linecolor rgb shade[i]
unset multiplot
