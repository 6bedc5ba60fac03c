# predicted time and bus bandwidth against size, an algorithm and protocol a line
# $data: a block per algorithm of bytes, time_us, busbw_gbps, then one of the fastest at each size.

set multiplot
set tmargin at screen 0.862
set bmargin at screen 0.48
set label 5 "predicted time" at graph 0, graph 1 left offset 0,0.8 textcolor rgb ink
set format x ""

plot $data index n using 1:2 with lines linecolor rgb "#ffe9a8" linewidth 13 title extra_name, \
     for [i = 0:n - 1] $data index i using 1:2 with lines linecolor rgb look(i) linewidth 2.6 \
         dashtype look_dash(i) title word(algorithms, i + 1)

unset label 1
unset label 2
unset key
unset logscale y
set tmargin at screen 0.39
set bmargin at screen 0.085
set format x
set xlabel "size of the vector" offset 0,0.2 textcolor rgb ink
set label 5 "bus bandwidth, GB/s" at graph 0, graph 1 left offset 0,0.8 textcolor rgb ink
set ytics auto
set format y "%g"
set yrange [0:*]

# a band wider than its distance from the axis would poke below it
plot $data index n using 1:($3 < 0.025 * top ? NaN : $3) with lines linecolor rgb "#ffe9a8" linewidth 13 notitle, \
     for [i = 0:n - 1] $data index i using 1:3 with lines linecolor rgb look(i) linewidth 2.6 \
         dashtype look_dash(i) notitle
unset multiplot
