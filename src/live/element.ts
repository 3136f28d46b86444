/*
 * Makes and changes elements: names from the mesh get in only as text and attributes, never as markup.
 *
 * Runs in the page: functions here may use only functions of the modules that page.ts lists.
 */

import { stateOf, type Track } from './track.js';

declare const document: PageDocument;

/** Listeners of the pointer, the focus and clicks. */
export interface Pointing {
  /** The edges that are pointed at from now on. */
  over(keys: readonly string[]): void;
  choose(key: string): void;
}

/** An element of the page. */
export function part(id: string): PageElement {
  return document.getElementById(id)!;
}

/** An element like the one in a template of the page. */
export function copyOf(template: string): PageElement {
  return part(template).content.firstElementChild!.cloneNode(true);
}

/** A new element of SVG. */
export function svgElement(
  tag: string,
  attributes: Readonly<Record<string, string | number>>,
  ...children: (PageElement | string)[]
): PageElement {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** Sets text that differs, so that what is selected stays so. */
export function setText(element: PageElement, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

export function setTime(element: PageElement, text: string, ms: number): void {
  setText(element, text);
  element.setAttribute('datetime', new Date(ms).toISOString());
}

/** Shows by classes how an edge answers. */
export function setState(element: PageElement, track: Track): void {
  for (const state of ['gone', 'fails', 'slow']) element.classList.toggle(state, state === stateOf(track));
}

/** Tells when the pointer comes to an element, and when it leaves. */
export function tellOf(element: PageElement, keys: readonly string[], pointing: Pointing): void {
  element.addEventListener('mouseenter', () => pointing.over(keys));
  element.addEventListener('mouseleave', () => pointing.over([]));
}

/** `Element`, of HTML or SVG. */
export interface PageElement {
  textContent: string | null;
  hidden: boolean;
  readonly style: { setProperty(name: string, value: string): void };
  readonly classList: { toggle(name: string, on: boolean): void };
  readonly childElementCount: number;
  readonly firstElementChild: PageElement | null;
  readonly lastElementChild: PageElement | null;
  readonly children: ArrayLike<PageElement>;
  /** Content of a `template`. */
  readonly content: PageElement;
  querySelector(selector: string): PageElement | null;
  cloneNode(deep: boolean): PageElement;
  setAttribute(name: string, value: string | number): void;
  append(...children: (PageElement | string)[]): void;
  prepend(...children: (PageElement | string)[]): void;
  replaceChildren(...children: (PageElement | string)[]): void;
  insertBefore(child: PageElement, next: PageElement | null): void;
  remove(): void;
  addEventListener(type: string, listener: () => void): void;
  /** Length of a `text` of SVG. */
  getComputedTextLength(): number;
}

/** `Document`. */
export interface PageDocument {
  title: string;
  readonly hidden: boolean;
  getElementById(id: string): PageElement | null;
  createElementNS(namespace: string, tag: string): PageElement;
  addEventListener(type: string, listener: () => void): void;
}
