// What the theme builds as a page opens, for those who listen to it or have no mouse: buttons of a block of code are no
// navigation, and a table that scrolls can be scrolled by keys.
function name() {
  for (const buttons of document.querySelectorAll('nav.md-code__nav')) buttons.setAttribute('role', 'presentation')
  for (const table of document.querySelectorAll('.md-typeset__scrollwrap'))
    if (table.scrollWidth > table.clientWidth) table.tabIndex = 0
}
new MutationObserver(name).observe(document.body, { childList: true, subtree: true })
name()
