"""`rte report`: one HTML file that says what a run came to, and in which its suspicious labels are reviewed.

material   what is known of a run: the files of its folder, its audit, its examples
words      headline numbers, what to do next, and the facts of a run, in sentences
curves     what the journal recorded, as series over epochs
charts     SVG: lines, steps, bars, matrices
panels     the charts of a run, each with its title, an explanation and its numbers as a table
pictures   thumbnails in sheets, as large as the file's budget allows
suspects   the rows that the review tool shows
embed      data, script and style in HTML, and the content policy
write      the template filled in, and its size
page.html, page.css, page.js: the file itself
"""
