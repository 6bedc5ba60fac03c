# what all plots share: canvas, fonts, palette, axes of sizes and times
# Set before: format ("png" or "svg"), output_path.

if (format eq "png") set terminal pngcairo size 1500,1050 enhanced font "DejaVu Sans,15" background "#ffffff"
if (format eq "svg") set terminal svg size 1500,1050 enhanced font "DejaVu Sans,Helvetica,sans-serif,19" background "#ffffff"
set output output_path
set encoding utf8

ink = "#2b2b2b"
faint = "#8a8a8a"
grid_colour = "#e4e4e4"

# Okabe & Ito's colours, told apart with any colour vision, yellow left out (too pale on white); two
# darker ones follow, then they repeat with other dashes and marks.
array colours[9] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#332288", "#7a4419", "#555555"]
array marks[9] = [7, 5, 9, 13, 11, 6, 4, 8, 12]
colour(i) = colours[1 + i % 9]
mark(i) = marks[1 + i % 9]
dash(i) = 1 + i / 9

# lines of one algorithm share its colour, their dashes tell protocols apart
look(i) = colour(int(word(looks_colour, i + 1)))
look_dash(i) = 1 + int(word(looks_dash, i + 1)) + int(word(looks_colour, i + 1)) / 9

set border 3 linecolor rgb "#9a9a9a" linewidth 1
set grid xtics ytics linecolor rgb grid_colour linewidth 1 linetype 1
set tics nomirror out scale 0.6 textcolor rgb ink
set key textcolor rgb ink
set lmargin at screen 0.075
set rmargin at screen 0.80

set logscale x 2
set xrange [x_min:x_max]

# sizes: at most a dozen labels, whole powers of two
doublings = log(x_max / x_min) / log(2)
stride = doublings > 22 ? 4 : doublings > 11 ? 2 : 1
unit(p) = word("B KiB MiB GiB TiB PiB EiB", 1 + p / 10)
set xtics ("" 1)
do for [p = 0:62:stride] { set xtics add (sprintf("%d %s", 2**(p % 10), unit(p)) 2.0**p) }
if (doublings < 3) { do for [p = 0:62] { set xtics add (sprintf("%g %s", 1.5 * 2**(p % 10), unit(p)) 1.5 * 2.0**p) } }

# heading: what it is, below it what to note
set label 1 plot_title at screen 0.022, screen 0.962 left noenhanced font ",21" textcolor rgb ink
set label 2 plot_subtitle at screen 0.022, screen 0.925 left noenhanced font ",15" textcolor rgb faint

# times: a label per factor of ten, more where there are few such factors
decades = log10(y_max / y_min)
steps = decades > 2.5 ? "1" : decades > 1 ? "1 2 5" : "1 1.5 2 3 4 5 6 8"
time_label(us) = us < 0.999 ? sprintf("%g ns", 1e3 * us) : us < 999 ? sprintf("%g µs", us) : \
                 us < 999e3 ? sprintf("%g ms", us / 1e3) : sprintf("%g s", us / 1e6)
set ytics ("" 0.01)
do for [k = -2:8] {
    do for [step in steps] { set ytics add (time_label(real(step) * 10.0**k) real(step) * 10.0**k) }
}
set logscale y 10
set yrange [y_min:y_max]
set key at screen 0.822, screen 0.868 left top Left reverse samplen 2.2 spacing 1.25 noenhanced
