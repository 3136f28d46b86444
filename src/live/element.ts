/**
 * Makes and changes elements: names from the mesh get in as text and attributes alone, never as markup.
 *
 * Runs in the page: functions here use each other and nothing else of their module (see page.ts).
 */

import type { PageDocument, PageElement } from './document.js';

/** An element of HTML. */
export function htmlElement(
  document: PageDocument,
  tag: string,
  attributes: Readonly<Record<string, string>>,
  ...children: (PageElement | string)[]
): PageElement {
  return createElement(document.createElementNS('http://www.w3.org/1999/xhtml', tag), attributes, children);
}

/** An element of SVG. */
export function svgElement(
  document: PageDocument,
  tag: string,
  attributes: Readonly<Record<string, string>>,
  ...children: (PageElement | string)[]
): PageElement {
  return createElement(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, children);
}

export function createElement(
  element: PageElement,
  attributes: Readonly<Record<string, string>>,
  children: (PageElement | string)[],
): PageElement {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** Sets text that differs, so that what is selected stays so. */
export function setText(element: PageElement, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

/** Sets or takes away a class. */
export function setClass(element: PageElement, name: string, on: boolean): void {
  element.classList.toggle(name, on);
}
