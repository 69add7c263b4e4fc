// What is wrong with how `root` is laid out, in words: texts over each other, texts outside their
// boxes, a page that scrolls sideways, pictures that do not show, text that cannot be read.
(root, steady) => {
  const problems = [];
  const view = root.ownerDocument.defaultView;
  const isSvg = root instanceof view.SVGElement;
  const style = element => view.getComputedStyle(element);
  const scrolls = element => /auto|scroll/.test(style(element).overflowX);
  const clips = element => style(element).overflowX !== 'visible';
  const quote = text => JSON.stringify(text.trim().slice(0, 40));
  const where = rect => `${rect.left.toFixed(0)},${rect.top.toFixed(0)} ${rect.width.toFixed(0)}x${rect.height.toFixed(0)}`;

  const cut = (rect, box) => {
    const left = Math.max(rect.left, box.left), right = Math.min(rect.right, box.right);
    const top = Math.max(rect.top, box.top), bottom = Math.min(rect.bottom, box.bottom);
    return {left, right, top, bottom, width: right - left, height: bottom - top};
  };
  const ancestors = function* (element) {
    for (let at = element; at && at !== root.parentElement; at = at.parentElement) yield at;
  };

  const texts = [];
  const walker = root.ownerDocument.createTreeWalker(root, view.NodeFilter.SHOW_TEXT);
  for (let node; (node = walker.nextNode());) {
    const parent = node.parentElement;
    if (!node.data.trim() || parent.closest('style, script, title, desc')) continue;
    if (!parent.checkVisibility({visibilityProperty: true})) continue;
    const range = root.ownerDocument.createRange();
    range.selectNodeContents(node);
    for (const rect of range.getClientRects()) {
      if (rect.width < 1 || rect.height < 1) continue;
      texts.push({words: node.data, parent, rect});
    }
  }

  // Texts that are scrolled out of sight lie over nothing.
  const visible = [];
  for (const text of texts) {
    let rect = text.rect;
    for (const element of ancestors(text.parent))
      if (!isSvg && clips(element)) rect = cut(rect, element.getBoundingClientRect());
    if (rect.width >= 1 && rect.height >= 1) visible.push({...text, rect});
  }
  visible.sort((a, b) => a.rect.top - b.rect.top);
  visible.forEach((one, index) => {
    for (let next = index + 1; next < visible.length; next++) {
      const other = visible[next];
      if (other.rect.top > one.rect.bottom) break;
      const shared = cut(one.rect, other.rect);
      if (shared.width > 1 && shared.height > 3)
        problems.push(`overlap: ${quote(one.words)} and ${quote(other.words)} by ${where(shared)}`);
    }
  });

  for (const {words, parent, rect} of texts) {
    for (const element of ancestors(parent)) {
      if (isSvg ? element !== root : style(element).display.startsWith('inline')) continue;
      if (!isSvg && scrolls(element)) break;
      const box = element.getBoundingClientRect();
      const out = rect.left < box.left - 1 || rect.right > box.right + 1;
      if (out || rect.top < box.top - 3 || rect.bottom > box.bottom + 3) {
        problems.push(`outside: ${quote(words)} at ${where(rect)} of ${element.localName} at ${where(box)}`);
        break;
      }
    }
  }

  // Labels stand in their bars and boxes.
  for (const group of isSvg ? root.querySelectorAll('g') : []) {
    const frame = group.querySelector(':scope > .outline, :scope > .box');
    for (const label of frame ? group.querySelectorAll(':scope > .label-in, :scope > .box-name, :scope > .box-note') : []) {
      const box = frame.getBoundingClientRect(), rect = label.getBoundingClientRect();
      if (rect.left < box.left - 1 || rect.right > box.right + 1)
        problems.push(`outside: ${quote(label.textContent)} of its box`);
    }
  }

  for (let at = isSvg ? null : root; at; at = at.parentElement)
    if ((at === root || scrolls(at)) && at.scrollWidth > at.clientWidth + 1)
      problems.push(`sideways: ${at.localName}.${at.classList[0]} is ${at.scrollWidth} wide in ${at.clientWidth}`);
  for (const table of root.querySelectorAll('table')) {
    // Nothing is measured inside what is folded.
    const box = table.checkVisibility() && [...ancestors(table)].find(scrolls);
    if (steady && box && box.scrollWidth > box.clientWidth + 1)
      problems.push(`sideways: the table ${table.className} is ${box.scrollWidth} wide in ${box.clientWidth}`);
  }

  for (const image of root.querySelectorAll('img')) {
    if (!image.complete || !image.naturalWidth) problems.push(`no picture: ${quote(image.alt)}`);
    if (!image.alt) problems.push('a picture without words');
  }

  const channels = colour => (colour.match(/[\d.]+/g) || []).map(Number);
  const luminance = rgb => {
    const [r, g, b] = rgb.map(c => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = element => {
    for (let at = element; at; at = at.parentElement) {
      const colour = channels(style(at).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour.slice(0, 3);
    }
    return [255, 255, 255];
  };
  for (const {words, parent} of visible) {
    if (parent instanceof view.SVGElement) continue;
    const [a, b] = [channels(style(parent).color).slice(0, 3), ground(parent)].map(luminance);
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 3) problems.push(`hard to read: ${quote(words)}, contrast ${contrast.toFixed(1)}`);
  }
  return {problems: problems.slice(0, 40), texts: visible.length};
}
